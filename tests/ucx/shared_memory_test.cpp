// Proves how transfers through the memory of a machine behave over real UCX: they bring the bytes; a peer that is killed
// is learned of by its control connection, and whoever waits is told once while the record stays; a peer that is stopped
// leaves them pending; and what cannot be closed ends with the worker.
#include <holdfast/platform/abi.hpp>

#include "tests/ucx/harness.hpp"

#include <gtest/gtest.h>

#include <signal.h>

#include <cstring>
#include <deque>

namespace holdfast::testing {
namespace {

constexpr std::uint64_t data_lane = 1;  // in the event endpoint_state
constexpr std::uint64_t parked_state = 5;

std::size_t data_endpoints(const side& s, std::uint64_t state) {
  std::size_t found = 0;
  for (const event_record& e : s.events(event_id::endpoint_state))
    if (e.fields[3] == data_lane && e.fields[2] == state) ++found;
  return found;
}

bool holds_pattern(registered& memory, std::uint64_t seed, std::size_t offset, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (memory.data()[i] != pattern(seed, offset + i)) return false;
  return true;
}

remote_reference reference_to(side& owner, registered& memory) {
  return {reinterpret_cast<std::uint64_t>(memory.data()), memory.size(), memory.memory().key, memory.memory().region,
          owner.net().incarnation()};
}

TEST(ucx_shared_memory, gets_of_every_size_bring_every_byte_over_an_endpoint_of_their_own) {
  peer_process peer({.bytes = std::size_t{4} << 20, .seed = 7});
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  const std::size_t of_the_probe = data_endpoints(own, 0);
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
  ASSERT_EQ(data_endpoints(own, 0), of_the_probe + 1);
  registered into(own, std::size_t{2} << 20);
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{64}, std::size_t{4096}, std::size_t{65537}, std::size_t{2} << 20}) {
    std::memset(into.data(), 0, into.size());
    waited_get get(own, peer.identity, peer.memory, bytes / 3 + 1, into, bytes);
    ASSERT_TRUE(get.submitted()) << get.submitted().error().text();
    const auto end = get.wait(30s);
    ASSERT_TRUE(end) << bytes;
    EXPECT_EQ(end->outcome, tp::transfer_outcome::ok) << end->why.text();
    EXPECT_TRUE(holds_pattern(into, 7, bytes / 3 + 1, bytes)) << bytes;
    EXPECT_EQ(get.times_orphaned(), 0u);
  }
  const auto closed = own.net().async_close(peer.identity, own.in(5s), holdfast::block);
  ASSERT_TRUE(closed) << closed.error().text();
  EXPECT_EQ(closed->kind, tp::close_kind::clean);
  EXPECT_EQ(closed->held, 0u);
  EXPECT_EQ(own.net().snapshot().keys, 0u);
  EXPECT_EQ(peer.finish(), 0);
  EXPECT_TRUE(own.teardown(5s).proof.has_value());
  expect_every_operation_ended_once(own);
}

TEST(ucx_shared_memory, without_the_setting_there_is_no_such_endpoint) {
  peer_process peer({.bytes = 65536, .seed = 2});
  tp::settings values;
  values.shared_memory = false;
  side own(values);
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
  registered into(own, 65536);
  waited_get get(own, peer.identity, peer.memory, 0, into, 65536);
  ASSERT_TRUE(get.submitted());
  const auto end = get.wait(30s);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->outcome, tp::transfer_outcome::ok);
  EXPECT_EQ(data_endpoints(own, 0), 0u);
}

TEST(ucx_shared_memory, two_sides_fetch_from_each_other_and_again_after_every_reconnection) {
  side a;
  side b;
  ASSERT_FALSE(a.failure()) << a.failure()->text();
  ASSERT_FALSE(b.failure()) << b.failure()->text();
  registered of_a(a, 65536), of_b(b, 65536), into_a(a, 65536), into_b(b, 65536);
  for (std::size_t i = 0; i < 65536; ++i) {
    of_a.data()[i] = pattern(1, i);
    of_b.data()[i] = pattern(2, i);
  }
  static_cast<void>(a.net().snapshot());
  static_cast<void>(b.net().snapshot());
  for (int round = 0; round < 4; ++round) {
    side& from = round % 2 == 0 ? a : b;
    side& to = round % 2 == 0 ? b : a;
    const auto connected =
        from.net().async_connect(std::string(to.net().listen_address()), to.net().self(), holdfast::block);
    ASSERT_TRUE(connected) << connected.error().text();
    const auto until = std::chrono::steady_clock::now() + 5s;
    while (!to.net().is_ready(from.net().self()) && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    // Only one side fetches in the second round: then the library's numbers of connections differ at the two ends.
    for (int side_of = 0; side_of < (round == 1 ? 1 : 2); ++side_of) {
      side& fetcher = side_of == 0 ? a : b;
      side& owner = side_of == 0 ? b : a;
      registered& into = side_of == 0 ? into_a : into_b;
      std::memset(into.data(), 0, into.size());
      waited_get get(fetcher, owner.net().self(), reference_to(owner, side_of == 0 ? of_b : of_a), 100, into, 20000);
      ASSERT_TRUE(get.submitted()) << get.submitted().error().text();
      const auto end = get.wait(10s);
      ASSERT_TRUE(end) << "round " << round;
      EXPECT_EQ(end->outcome, tp::transfer_outcome::ok) << end->why.text();
      EXPECT_TRUE(holds_pattern(into, side_of == 0 ? 2 : 1, 100, 20000));
    }
    const auto closed = from.net().async_close(to.net().self(), from.in(3s), holdfast::block);
    ASSERT_TRUE(closed) << closed.error().text();
    while (to.net().is_ready(from.net().self()) && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }
}

TEST(ucx_shared_memory, a_peer_that_is_killed_is_learned_of_by_its_control_connection_and_the_waiter_is_told_once) {
  peer_process peer({.bytes = std::size_t{8} << 20, .seed = 5});
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
  std::deque<registered> into;
  for (int i = 0; i < 3; ++i) into.emplace_back(own, std::size_t{8} << 20);
  const std::size_t posted_before = own.events(event_id::operation_posted).size();
  const std::size_t parked_before = data_endpoints(own, parked_state);  // the start-up probe's
  peer.signal(SIGSTOP);
  std::deque<waited_get> gets;
  for (auto& one : into) {
    gets.emplace_back(own, peer.identity, peer.memory, 0, one, one.size());
    ASSERT_TRUE(gets.back().submitted());
  }
  ASSERT_TRUE(own.wait_for(event_id::operation_posted, posted_before + 3, 5s));
  EXPECT_EQ(own.net().snapshot().operations.orphaned, 0u);
  peer.signal(SIGKILL);
  for (auto& get : gets) {
    EXPECT_EQ(get.times_orphaned(5s), 1u) << "nobody was told five seconds after the peer died";
    EXPECT_EQ(get.times_ended(), 0u) << "its record must stay until a callback or the sweep";
  }
  ASSERT_TRUE(own.wait_for(event_id::peer_lost, 1, 5s));
  EXPECT_EQ(own.net().snapshot().operations.orphaned, 3u);
  EXPECT_EQ(own.net().snapshot().operations.posted, 3u);
  // Waiters are told on the way there.
  const auto until = std::chrono::steady_clock::now() + 5s;
  while (data_endpoints(own, parked_state) == parked_before && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  EXPECT_EQ(own.net().snapshot().endpoints_parked, 1u);
  EXPECT_EQ(data_endpoints(own, parked_state), parked_before + 1);
  EXPECT_FALSE(own.net().is_ready(peer.identity));

  // Another life is another connection, and has an endpoint of its own.
  peer_process next({.bytes = 65536, .seed = 6, .worker_id = peer.identity.worker_id});
  ASSERT_TRUE(own.net().async_connect(next.address, next.identity, holdfast::block));
  {
    registered small(own, 65536);
    waited_get get(own, next.identity, next.memory, 0, small, 65536);
    ASSERT_TRUE(get.submitted());
    const auto end = get.wait(10s);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->outcome, tp::transfer_outcome::ok) << end->why.text();
    EXPECT_TRUE(holds_pattern(small, 6, 0, 65536));
  }
  const auto ended = own.teardown(5s);
  EXPECT_FALSE(ended.report.hung);
  // UCX 1.13 may call back from the worker's destruction, or not: then the sweep ends them.
  EXPECT_LE(ended.report.swept, 3u);
  EXPECT_EQ(ended.report.parked, 1u);
  ASSERT_TRUE(ended.proof.has_value());
  for (auto& get : gets) {
    const auto end = get.wait(0s);
    ASSERT_TRUE(end);
    EXPECT_NE(end->outcome, tp::transfer_outcome::ok);
    EXPECT_EQ(get.times_ended(), 1u);
    EXPECT_EQ(get.times_orphaned(), 1u);
  }
  EXPECT_EQ(own.events(event_id::peer_lost).size(), 1u);
  expect_every_operation_ended_once(own);
}

TEST(ucx_shared_memory, a_peer_that_is_stopped_leaves_the_get_pending_and_the_teardown_ends_it) {
  peer_process peer({.bytes = std::size_t{1} << 20, .seed = 5});
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
  registered into(own, std::size_t{1} << 20);
  peer.signal(SIGSTOP);
  waited_get get(own, peer.identity, peer.memory, 0, into, into.size());
  ASSERT_TRUE(get.submitted());
  EXPECT_FALSE(get.wait(500ms)) << "a stopped peer answered";
  EXPECT_EQ(get.times_orphaned(), 0u) << "silence is not death";
  EXPECT_EQ(own.net().snapshot().operations.posted, 1u);
  EXPECT_EQ(own.events(event_id::peer_lost).size(), 0u);
  const auto before = std::chrono::steady_clock::now();
  const auto ended = own.teardown(2s);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 4s);
  EXPECT_FALSE(ended.report.hung);
  EXPECT_TRUE(ended.proof.has_value());
  const auto end = get.wait(0s);
  ASSERT_TRUE(end) << "the teardown returned with the operation still open";
  EXPECT_NE(end->outcome, tp::transfer_outcome::ok);
  EXPECT_EQ(get.times_ended(), 1u);
}

TEST(ucx_shared_memory, a_stopped_peer_that_goes_on_serves_what_was_pending) {
  peer_process peer({.bytes = std::size_t{1} << 20, .seed = 9});
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
  registered into(own, std::size_t{1} << 20);
  peer.signal(SIGSTOP);
  waited_get get(own, peer.identity, peer.memory, 0, into, into.size());
  ASSERT_TRUE(get.submitted());
  EXPECT_FALSE(get.wait(100ms));
  peer.signal(SIGCONT);
  const auto end = get.wait(10s);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->outcome, tp::transfer_outcome::ok) << end->why.text();
  EXPECT_TRUE(holds_pattern(into, 9, 0, into.size()));
}

TEST(ucx_shared_memory, a_peer_that_is_declared_dead_is_lost_once_and_its_life_is_never_accepted_again) {
  peer_process peer({.bytes = std::size_t{1} << 20, .seed = 5});
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
  registered into(own, std::size_t{1} << 20);
  peer.signal(SIGSTOP);
  waited_get get(own, peer.identity, peer.memory, 0, into, into.size());
  ASSERT_TRUE(get.submitted());
  EXPECT_FALSE(get.wait(100ms));
  const auto told = own.net().async_declare_dead(peer.identity, tp::death_evidence::job_ended, holdfast::block);
  ASSERT_TRUE(told) << told.error().text();
  EXPECT_EQ(told->connections, 1u);
  EXPECT_EQ(told->held, 1u);
  EXPECT_EQ(get.times_orphaned(1s), 1u);
  ASSERT_TRUE(own.wait_for(event_id::peer_lost, 1, 1s));
  EXPECT_FALSE(own.net().is_ready(peer.identity));
  peer.signal(SIGCONT);
  const auto again = own.net().async_connect(peer.address, peer.identity, holdfast::block);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, error_code::stale_key) << again.error().text();
  EXPECT_EQ(own.events(event_id::peer_lost).size(), 1u);
  EXPECT_EQ(own.events(event_id::peer_declared_dead).size(), 1u);
  const auto end = get.wait(10s);
  ASSERT_TRUE(end) << "the parked endpoint serves on: the peer lives after all";
  EXPECT_EQ(get.times_orphaned(), 1u);
}

TEST(ucx_shared_memory, a_revoked_peer_may_connect_again_and_the_answer_says_whether_its_reads_stop) {
  for (const bool shared : {false, true}) {
    peer_process peer({.bytes = 65536, .seed = 5});
    tp::settings values;
    values.shared_memory = shared;
    side own(values);
    ASSERT_FALSE(own.failure()) << own.failure()->text();
    ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
    const auto revoked = own.net().async_revoke(peer.identity, holdfast::block);
    ASSERT_TRUE(revoked) << revoked.error().text();
    EXPECT_EQ(revoked->connections, 1u);
    EXPECT_EQ(revoked->reads_stop, !shared);
    EXPECT_FALSE(own.net().is_ready(peer.identity));
    const auto again = own.net().async_connect(peer.address, peer.identity, holdfast::block);
    EXPECT_TRUE(again) << again.error().text();
    const auto nobody = own.net().async_revoke(peer_id{1, 2}, holdfast::block);
    ASSERT_TRUE(nobody);
    EXPECT_EQ(nobody->connections, 0u);
    EXPECT_TRUE(nobody->reads_stop);
  }
}

TEST(ucx_shared_memory, a_silent_peer_with_something_owed_is_suspected_once_and_nothing_ends) {
  peer_process peer({.bytes = 65536, .seed = 5});
  tp::settings values;
  values.peer_suspect_after = 100ms;
  side own(values);
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
  registered into(own, 65536);
  peer.signal(SIGSTOP);
  waited_get get(own, peer.identity, peer.memory, 0, into, 65536);
  ASSERT_TRUE(get.submitted());
  ASSERT_TRUE(own.wait_for(event_id::peer_suspect, 1, 5s));
  EXPECT_FALSE(get.wait(400ms));
  EXPECT_EQ(own.events(event_id::peer_suspect).size(), 1u);
  EXPECT_TRUE(own.net().is_ready(peer.identity));
  peer.signal(SIGCONT);
  const auto end = get.wait(10s);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->outcome, tp::transfer_outcome::ok);
}

TEST(ucx_shared_memory, the_capabilities_say_what_was_found) {
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  const tp::capabilities& found = own.net().found();
  EXPECT_TRUE(found.get_works);
  EXPECT_TRUE(found.shares_memory);
  EXPECT_TRUE(found.registrations_distinct);
  EXPECT_TRUE(found.callback_exit_seen);
  EXPECT_FALSE(found.process.memory_functions_patched) << "loaded with UCX_MEM_EVENTS=n";
  EXPECT_GE(found.wire.am_header_bytes_max, 64u);
  EXPECT_TRUE(found.wire.thread_safe);
  EXPECT_TRUE(found.wire.gets_take_turns) << "over tcp they do";
  EXPECT_EQ(found.fork, platform::fork_guard::not_needed);
  EXPECT_NE(found.to_json().find("\"lane\": \"emulated\""), std::string::npos) << found.to_json();
  EXPECT_EQ(own.events(event_id::transport_capabilities).size(), 1u);
  EXPECT_EQ(own.events(event_id::signal_owner).size(), 3u);
}

TEST(ucx_shared_memory, a_close_towards_a_stopped_peer_parks_the_endpoint_and_says_what_is_held) {
  peer_process peer({.bytes = std::size_t{1} << 20, .seed = 5});
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
  registered into(own, std::size_t{1} << 20);
  peer.signal(SIGSTOP);
  waited_get get(own, peer.identity, peer.memory, 0, into, into.size());
  ASSERT_TRUE(get.submitted());
  EXPECT_FALSE(get.wait(100ms));
  const auto closed = own.net().async_close(peer.identity, own.in(500ms), holdfast::block);
  ASSERT_TRUE(closed) << closed.error().text();
  EXPECT_EQ(closed->kind, tp::close_kind::parked);
  EXPECT_EQ(closed->held, 1u);
  EXPECT_EQ(get.times_orphaned(1s), 1u);
  EXPECT_EQ(get.times_ended(), 0u);
  // The parked endpoint still brings the bytes once the peer goes on: that is the fence of the held memory.
  peer.signal(SIGCONT);
  const auto end = get.wait(10s);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->outcome, tp::transfer_outcome::ok) << end->why.text();
  EXPECT_EQ(get.times_orphaned(), 1u);
  EXPECT_EQ(own.net().snapshot().operations.orphaned, 0u);
}

}  // namespace
}  // namespace holdfast::testing
