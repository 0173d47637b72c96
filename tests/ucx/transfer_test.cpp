// Proves that GETs over real UCX bring the right bytes, and that each operation ends exactly once, whatever happens to
// the peer: it serves, is killed, is stopped, or comes back as another life. Every peer is a process of its own.
#include <holdfast/platform/abi.hpp>

#include "tests/ucx/harness.hpp"

#include <gtest/gtest.h>

#include <signal.h>

#include <deque>

namespace holdfast::testing {
namespace {

bool holds_pattern(registered& memory, std::uint64_t seed, std::size_t offset, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (memory.data()[i] != pattern(seed, offset + i)) return false;
  return true;
}

TEST(ucx_transfer, the_start_up_probe_finds_that_gets_work_and_a_teardown_gives_the_witness) {
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  EXPECT_TRUE(own.net().get_works()) << own.net().get_absent_because().text();
  EXPECT_NE(own.net().listen_address(), "127.0.0.1:0");
  EXPECT_GE(own.net().versions().minor, 13u);
  const auto ended = own.teardown(5s);
  EXPECT_FALSE(ended.report.hung);
  ASSERT_TRUE(ended.proof.has_value());
  EXPECT_EQ(ended.proof->incarnation(), own.net().incarnation());
  EXPECT_TRUE(ended.proof->fences_gets());
  EXPECT_EQ(own.net().snapshot().registrations, 0u);
  expect_every_operation_ended_once(own);
}

TEST(ucx_transfer, a_get_of_every_size_brings_every_byte) {
  peer_process peer({.bytes = std::size_t{12} << 20, .seed = 7});
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  const auto connected = own.net().async_connect(peer.address, peer.identity, holdfast::block);
  ASSERT_TRUE(connected) << connected.error().text();
  EXPECT_EQ(*connected, peer.identity);
  EXPECT_TRUE(own.net().is_ready(peer.identity));
  registered into(own, std::size_t{8} << 20);
  for (const std::size_t bytes :
       {std::size_t{64}, std::size_t{4096}, std::size_t{65537}, std::size_t{1} << 20, std::size_t{8} << 20}) {
    const std::size_t offset = bytes / 3 + 1;
    std::memset(into.data(), 0, into.size());
    waited_get get(own, peer.identity, peer.memory, offset, into, bytes);
    ASSERT_TRUE(get.submitted()) << get.submitted().error().text();
    const auto end = get.wait(30s);
    ASSERT_TRUE(end) << bytes;
    EXPECT_EQ(end->outcome, tp::transfer_outcome::ok) << end->why.text();
    EXPECT_TRUE(holds_pattern(into, 7, offset, bytes)) << bytes;
    EXPECT_EQ(get.times_ended(), 1u);
  }
  const auto closed = own.net().async_close(peer.identity, own.in(5s), holdfast::block);
  ASSERT_TRUE(closed) << closed.error().text();
  EXPECT_EQ(closed->held, 0u);
  EXPECT_FALSE(own.net().is_ready(peer.identity));
  EXPECT_EQ(own.net().snapshot().keys, 0u);
  EXPECT_EQ(peer.finish(), 0);
}

TEST(ucx_transfer, many_gets_at_once_all_end) {
  peer_process peer({.bytes = std::size_t{1} << 20, .seed = 3});
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
  std::deque<registered> into;
  std::deque<waited_get> gets;
  for (std::size_t i = 0; i < 64; ++i) {
    into.emplace_back(own, 8192);
    gets.emplace_back(own, peer.identity, peer.memory, i * 8192, into.back(), 8192);
    ASSERT_TRUE(gets.back().submitted());
  }
  for (std::size_t i = 0; i < gets.size(); ++i) {
    const auto end = gets[i].wait(30s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->outcome, tp::transfer_outcome::ok) << end->why.text();
    EXPECT_TRUE(holds_pattern(into[i], 3, i * 8192, 8192)) << i;
  }
  EXPECT_EQ(own.net().snapshot().operations.posted, 0u);
}

TEST(ucx_transfer, a_peer_killed_in_mid_get_ends_it_with_an_error_and_those_that_waited_for_their_turn_as_never_begun) {
  peer_process peer({.bytes = std::size_t{64} << 20, .seed = 5});
  // Over tcp; tests/ucx/shared_memory_test.cpp has the other lane.
  tp::settings values;
  values.shared_memory = false;
  side own(values);
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
  {
    std::deque<registered> into;
    std::deque<waited_get> gets;
    for (int i = 0; i < 4; ++i) into.emplace_back(own, std::size_t{64} << 20);
    // Stopped first, so that the GETs are surely under way when it dies.
    peer.signal(SIGSTOP);
    for (auto& one : into) {
      gets.emplace_back(own, peer.identity, peer.memory, 0, one, one.size());
      ASSERT_TRUE(gets.back().submitted());
    }
    ASSERT_TRUE(own.wait_for(event_id::operation_waits, 3, 5s));
    peer.signal(SIGKILL);
    for (auto& get : gets) {
      const auto end = get.wait(5s);
      ASSERT_TRUE(end) << "still pending five seconds after the peer died";
      EXPECT_EQ(end->outcome,
                &get == &gets.front() ? tp::transfer_outcome::failed : tp::transfer_outcome::never_started);
      EXPECT_TRUE(end->why.code == error_code::peer_lost || end->why.code == error_code::transfer_failed)
          << end->why.text();
      EXPECT_EQ(get.times_ended(), 1u);
    }
    ASSERT_TRUE(own.wait_for(event_id::peer_lost, 1, 5s));
    EXPECT_FALSE(own.net().is_ready(peer.identity));
    waited_get late(own, peer.identity, peer.memory, 0, into.front(), 64);
    ASSERT_FALSE(late.submitted());
    EXPECT_EQ(late.submitted().error().code, error_code::unreachable);
  }
  const auto ended = own.teardown(5s);
  EXPECT_TRUE(ended.proof.has_value());
  EXPECT_EQ(own.events(event_id::peer_lost).size(), 1u);
  expect_every_operation_ended_once(own);
}

TEST(ucx_transfer, a_stopped_peer_leaves_the_get_pending_and_the_teardown_returns_by_its_deadline) {
  peer_process peer({.bytes = std::size_t{1} << 20, .seed = 5});
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
  registered into(own, std::size_t{1} << 20);
  peer.signal(SIGSTOP);
  waited_get get(own, peer.identity, peer.memory, 0, into, into.size());
  ASSERT_TRUE(get.submitted());
  EXPECT_FALSE(get.wait(500ms)) << "a stopped peer answered";
  EXPECT_EQ(own.net().snapshot().operations.posted, 1u);
  const auto before = std::chrono::steady_clock::now();
  const auto ended = own.teardown(2s);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 4s);
  EXPECT_FALSE(ended.report.hung);
  EXPECT_TRUE(ended.proof.has_value());
  const auto end = get.wait(0s);
  ASSERT_TRUE(end) << "the teardown returned with the operation still open";
  EXPECT_NE(end->outcome, tp::transfer_outcome::ok);
  EXPECT_EQ(get.times_ended(), 1u);
  expect_every_operation_ended_once(own);
}

TEST(ucx_transfer, a_get_that_nobody_wants_any_more_is_withdrawn_before_submission) {
  peer_process peer({.bytes = 4096, .seed = 2});
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
  registered into(own, 4096);
  waited_get get(own, peer.identity, peer.memory, 0, into, 4096, false);
  ASSERT_TRUE(get.submitted());
  const auto end = get.wait(5s);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->outcome, tp::transfer_outcome::never_started);
  EXPECT_EQ(end->why.code, error_code::cancelled);
}

TEST(ucx_transfer, a_restarted_peer_is_another_one_and_its_old_references_are_stale) {
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  peer_process first({.bytes = 4096, .seed = 1, .worker_id = 77});
  ASSERT_TRUE(own.net().async_connect(first.address, first.identity, holdfast::block));
  registered into(own, 4096);

  // The second life connects to us while the first still stands: it replaces it.
  peer_process second(
      {.bytes = 4096, .seed = 2, .worker_id = 77, .connect_to = std::string(own.net().listen_address())});
  ASSERT_NE(first.identity.incarnation, second.identity.incarnation);
  ASSERT_TRUE(own.wait_for(event_id::peer_lost, 1, 5s));
  EXPECT_FALSE(own.net().is_ready(first.identity));
  EXPECT_TRUE(own.net().is_ready(second.identity));

  waited_get stale(own, first.identity, first.memory, 0, into, 64);
  ASSERT_FALSE(stale.submitted());
  EXPECT_EQ(stale.submitted().error().code, error_code::stale_key);
  waited_get fresh(own, second.identity, second.memory, 0, into, 4096);
  ASSERT_TRUE(fresh.submitted());
  const auto end = fresh.wait(10s);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->outcome, tp::transfer_outcome::ok) << end->why.text();
  EXPECT_TRUE(holds_pattern(into, 2, 0, 4096));

  // The first life knocks again: an incarnation never goes back.
  const auto again = own.net().async_connect(first.address, peer_id{}, holdfast::block);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, error_code::stale_key);
  EXPECT_TRUE(own.net().is_ready(second.identity));
}

}  // namespace
}  // namespace holdfast::testing
