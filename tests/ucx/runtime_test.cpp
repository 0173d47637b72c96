// Runtimes over real UCX: bytes move into pinned buffers, and whatever a peer does, a shutdown returns by its deadline
// with every arena in one number and the books balanced.
#include <tests/ucx/harness.hpp>

#include <holdfast/pinned/pool.hpp>
#include <holdfast/runtime/runtime.hpp>
#include <holdfast/runtime/ucx_device.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <gtest/gtest.h>

#include <signal.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::testing {

namespace {

using answer = result<pinned::get_answer>;

runtime_options small_options() {
  runtime_options options;
  options.pinned.initial_arena_bytes = std::uint64_t{4} << 20;
  options.recorded_events = std::size_t{1} << 14;
  options.recorded_level = event_level::trace;
  return options;
}

/// A host and its runtime.
struct embedder {
  explicit embedder(ucx_device_options device = {}) {
    auto made = runtime::create(host, small_options(), ucx_device(std::move(device)));
    if (made)
      rt.emplace(std::move(*made));
    else
      failure = made.error();
  }
  std::uint64_t events(event_id id) {
    std::uint64_t count = 0;
    for (const auto& record : rt->events().copy_recent()) count += record.id == id;
    return count;
  }
  /// As much of the range as the arena holds, wholly filled with something else than the pattern.
  pinned::buffer buffer(std::size_t bytes) {
    auto got = rt->pinned().async_alloc(bytes, holdfast::block);
    EXPECT_TRUE(got) << got.error().text();
    if (!got) return {};
    std::memset(got->bytes().data(), 0xee, bytes);
    return std::move(*got);
  }

  platform::host host{2};
  std::optional<runtime> rt;
  std::optional<error> failure;
};

/// A handler's answer, for a test that goes on meanwhile.
class awaited {
 public:
  auto handler() {
    return boost::asio::bind_cancellation_slot(signal_.slot(), [kept = kept_](answer value) {
      const std::scoped_lock lock(kept->mutex);
      kept->value.emplace(std::move(value));
      kept->came.notify_all();
    });
  }
  void cancel() { signal_.emit(boost::asio::cancellation_type::terminal); }
  answer* wait(std::chrono::nanoseconds bound) {
    std::unique_lock lock(kept_->mutex);
    if (!kept_->came.wait_for(lock, bound, [this] { return kept_->value.has_value(); })) return nullptr;
    return &*kept_->value;
  }

 private:
  struct kept {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<answer> value;
  };
  boost::asio::cancellation_signal signal_;
  std::shared_ptr<kept> kept_ = std::make_shared<kept>();
};

bool has_pattern(const pinned::buffer& buffer, std::uint64_t seed, std::size_t bytes) {
  if (buffer.size() != bytes) return false;
  for (std::size_t i = 0; i < bytes; ++i)
    if (buffer.bytes()[i] != pattern(seed, i)) return false;
  return true;
}

/// `gets`: how many there were besides those of the start-up probe, at least.
void expect_balanced(embedder& own, const result<runtime_report>& report, std::size_t gets) {
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_TRUE(report->witnessed);
  EXPECT_EQ(report->bytes_registered, 0u) << report->to_json();
  EXPECT_EQ(report->device_operations, 0u) << report->to_json();
  EXPECT_EQ(own.events(event_id::ledger_corrupt), 0u);
  std::map<std::uint64_t, int> open;
  for (const auto& record : own.rt->events().copy_recent()) {
    if (record.id == event_id::operation_accepted) ++open[record.fields[0]];
    if (record.id == event_id::operation_ended) --open[record.fields[0]];
  }
  EXPECT_GT(open.size(), gets);
  for (const auto& [operation, left] : open) EXPECT_EQ(left, 0) << "operation " << operation;
  EXPECT_EQ(own.events(event_id::block_leaked), 0u);
}

}  // namespace

TEST(ucx_runtime, a_get_brings_every_byte_into_a_pinned_buffer) {
  peer_process peer({.bytes = std::size_t{1} << 20, .seed = 11});
  embedder own;
  ASSERT_FALSE(own.failure) << own.failure->text();
  ASSERT_TRUE(own.rt->peers()->async_connect(peer.address, peer.identity, holdfast::block));
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{65537}, std::size_t{1} << 20}) {
    remote_reference source = peer.memory;
    source.length = bytes;
    auto got = own.rt->pinned().async_get(peer.identity, source, own.buffer(bytes), holdfast::block);
    ASSERT_TRUE(got) << got.error().text();
    ASSERT_TRUE(got->outcome) << got->outcome.error().text();
    EXPECT_TRUE(has_pattern(got->destination, 11, bytes)) << bytes;
  }
  const auto report = own.rt->async_shutdown(own.rt->now() + 5s, holdfast::block);
  ASSERT_NO_FATAL_FAILURE(expect_balanced(own, report, 4));
  EXPECT_TRUE(report->clean()) << report->to_json();
  EXPECT_EQ(report->pinned.arenas_confirmed, 1u);
}

TEST(ucx_runtime, two_runtimes_of_one_process_fetch_from_each_other) {
  embedder a, b;
  ASSERT_FALSE(a.failure) << a.failure->text();
  ASSERT_FALSE(b.failure) << b.failure->text();
  auto offered = b.buffer(100'000);
  for (std::size_t i = 0; i < offered.size(); ++i) offered.bytes()[i] = pattern(3, i);
  ASSERT_TRUE(a.rt->peers()->async_connect(std::string(b.rt->peers()->listen_address()), b.rt->peers()->self(),
                                           holdfast::block));
  const auto where = offered.remote();
  ASSERT_TRUE(where);
  auto got = a.rt->pinned().async_get(b.rt->peers()->self(), *where, a.buffer(offered.size()), holdfast::block);
  ASSERT_TRUE(got && got->outcome);
  EXPECT_TRUE(has_pattern(got->destination, 3, offered.size()));
  remote_reference stale = *where;
  ++stale.incarnation;
  auto refused = a.rt->pinned().async_get(b.rt->peers()->self(), stale, a.buffer(10), holdfast::block);
  ASSERT_TRUE(refused && !refused->outcome);
  EXPECT_TRUE(refused->destination);
  const auto first = a.rt->async_shutdown(a.rt->now() + 5s, holdfast::block);
  ASSERT_NO_FATAL_FAILURE(expect_balanced(a, first, 1));
  EXPECT_TRUE(first->clean()) << first->to_json();
  const auto second = b.rt->async_shutdown(b.rt->now() + 5s, holdfast::block);
  ASSERT_NO_FATAL_FAILURE(expect_balanced(b, second, 0));
  EXPECT_TRUE(second->clean()) << second->to_json();
}

TEST(ucx_runtime, one_that_ends_takes_nothing_from_another_of_the_same_process) {
  peer_process peer({.bytes = std::size_t{1} << 20, .seed = 15});
  embedder stays;
  ASSERT_FALSE(stays.failure) << stays.failure->text();
  ASSERT_TRUE(stays.rt->peers()->async_connect(peer.address, peer.identity, holdfast::block));
  constexpr std::size_t under_way_max = 16;
  const auto read = [&peer](embedder& by) {
    auto got = by.rt->pinned().async_get(peer.identity, peer.memory, by.buffer(peer.memory.length), holdfast::block);
    ASSERT_TRUE(got) << got.error().text();
    ASSERT_TRUE(got->outcome) << got->outcome.error().text();
    EXPECT_TRUE(has_pattern(got->destination, 15, peer.memory.length));
  };
  for (int life = 0; life < 3; ++life) {
    embedder ends;
    ASSERT_FALSE(ends.failure) << ends.failure->text();
    ASSERT_TRUE(ends.rt->peers()->async_connect(peer.address, peer.identity, holdfast::block));
    ASSERT_NO_FATAL_FAILURE(read(ends));
    std::array<awaited, under_way_max> under_way;
    for (awaited& each : under_way)
      stays.rt->pinned().async_get(peer.identity, peer.memory, stays.buffer(peer.memory.length), each.handler());
    const auto report = ends.rt->async_shutdown(ends.rt->now() + 5s, holdfast::block);
    ASSERT_NO_FATAL_FAILURE(expect_balanced(ends, report, 1));
    EXPECT_TRUE(report->clean()) << report->to_json();
    for (awaited& each : under_way) {
      const answer* const got = each.wait(10s);
      ASSERT_NE(got, nullptr);
      ASSERT_TRUE(*got && (*got)->outcome);
      EXPECT_TRUE(has_pattern((*got)->destination, 15, peer.memory.length));
    }
    ASSERT_NO_FATAL_FAILURE(read(stays));
  }
  const auto report = stays.rt->async_shutdown(stays.rt->now() + 5s, holdfast::block);
  ASSERT_NO_FATAL_FAILURE(expect_balanced(stays, report, 3 * (under_way_max + 1)));
  EXPECT_TRUE(report->clean()) << report->to_json();
}

TEST(ucx_runtime, a_stopped_peers_get_is_held_and_counted_and_the_shutdown_returns_by_its_deadline) {
  peer_process peer({.bytes = std::size_t{1} << 20, .seed = 12});
  embedder own;
  ASSERT_FALSE(own.failure) << own.failure->text();
  ASSERT_TRUE(own.rt->peers()->async_connect(peer.address, peer.identity, holdfast::block));
  peer.signal(SIGSTOP);
  awaited held;
  remote_reference source = peer.memory;
  own.rt->pinned().async_get(peer.identity, source, own.buffer(source.length), held.handler());
  EXPECT_EQ(held.wait(300ms), nullptr) << "a stopped peer answered";
  EXPECT_EQ(own.rt->pinned().in_flight_transfers(), 1u);
  const auto before = std::chrono::steady_clock::now();
  const auto report = own.rt->async_shutdown(own.rt->now() + 2s, holdfast::block);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 4s);
  ASSERT_NO_FATAL_FAILURE(expect_balanced(own, report, 1));
  EXPECT_EQ(report->pinned.arenas_not_submitted, 1u) << report->to_json();
  EXPECT_EQ(report->pinned.transfers_outstanding, 1u);
  EXPECT_EQ(own.events(event_id::unmap_submitted), 0u) << "an unmap under a transfer";
  const answer* const told = held.wait(5s);
  ASSERT_NE(told, nullptr) << "the shutdown returned with the caller still waiting";
  ASSERT_FALSE(*told);
  EXPECT_EQ(told->error().code, error_code::indeterminate) << told->error().text();
}

TEST(ucx_runtime, a_get_cancelled_in_flight_keeps_its_memory_until_it_ended) {
  peer_process peer({.bytes = std::size_t{1} << 20, .seed = 13});
  embedder own;
  ASSERT_FALSE(own.failure) << own.failure->text();
  ASSERT_TRUE(own.rt->peers()->async_connect(peer.address, peer.identity, holdfast::block));
  peer.signal(SIGSTOP);
  auto destination = own.buffer(std::size_t{1} << 20);
  const std::byte* const written = destination.bytes().data();
  awaited given_up;
  own.rt->pinned().async_get(peer.identity, peer.memory, std::move(destination), given_up.handler());
  EXPECT_EQ(given_up.wait(300ms), nullptr);
  given_up.cancel();
  const answer* const told = given_up.wait(5s);
  ASSERT_NE(told, nullptr);
  ASSERT_FALSE(*told);
  EXPECT_EQ(told->error().code, error_code::cancelled);
  auto other = own.buffer(std::size_t{1} << 20);
  ASSERT_EQ(other.size(), std::size_t{1} << 20);
  EXPECT_TRUE(other.bytes().data() >= written + other.size() || other.bytes().data() + other.size() <= written)
      << "memory that a transfer writes was granted again";
  peer.signal(SIGCONT);
  const auto patience = std::chrono::steady_clock::now() + 10s;
  while (own.rt->pinned().in_flight_transfers() != 0 && std::chrono::steady_clock::now() < patience) platform::yield();
  EXPECT_EQ(own.rt->pinned().in_flight_transfers(), 0u);
  for (const std::byte b : other.bytes()) ASSERT_EQ(b, std::byte{0xee}) << "late bytes in another tenant";
  other.reset();
  const auto report = own.rt->async_shutdown(own.rt->now() + 5s, holdfast::block);
  ASSERT_NO_FATAL_FAILURE(expect_balanced(own, report, 1));
  EXPECT_TRUE(report->clean()) << report->to_json();
}

TEST(ucx_runtime, a_peer_killed_in_mid_get_over_tcp_is_an_error_and_the_buffer_comes_back) {
  peer_process peer({.bytes = std::size_t{64} << 20, .seed = 14});
  ucx_device_options device;
  device.transport.shared_memory = false;
  embedder own(std::move(device));
  ASSERT_FALSE(own.failure) << own.failure->text();
  ASSERT_TRUE(own.rt->peers()->async_connect(peer.address, peer.identity, holdfast::block));
  peer.signal(SIGSTOP);
  awaited lost;
  own.rt->pinned().async_get(peer.identity, peer.memory, own.buffer(peer.memory.length), lost.handler());
  EXPECT_EQ(lost.wait(200ms), nullptr);
  peer.signal(SIGKILL);
  answer* const told = lost.wait(5s);
  ASSERT_NE(told, nullptr) << "not within five seconds";
  ASSERT_TRUE(*told) << told->error().text();
  ASSERT_FALSE((*told)->outcome);
  const error_code why = (*told)->outcome.error().code;
  EXPECT_TRUE(why == error_code::peer_lost || why == error_code::transfer_failed) << name_of(why);
  EXPECT_EQ((*told)->destination.size(), peer.memory.length);
  (*told)->destination.reset();
  const auto report = own.rt->async_shutdown(own.rt->now() + 5s, holdfast::block);
  ASSERT_NO_FATAL_FAILURE(expect_balanced(own, report, 1));
  EXPECT_TRUE(report->clean()) << report->to_json();
  EXPECT_EQ(report->pinned.transfers_outstanding, 0u) << report->to_json();
  EXPECT_EQ(report->pinned.arenas_not_submitted, 0u) << report->to_json();
}

TEST(ucx_runtime, a_peer_killed_in_mid_get_through_shared_memory_leaves_bytes_that_are_held_until_the_worker_ended) {
  peer_process peer({.bytes = std::size_t{64} << 20, .seed = 14});
  embedder own;
  ASSERT_FALSE(own.failure) << own.failure->text();
  ASSERT_TRUE(own.rt->peers()->async_connect(peer.address, peer.identity, holdfast::block));
  peer.signal(SIGSTOP);
  awaited lost;
  own.rt->pinned().async_get(peer.identity, peer.memory, own.buffer(peer.memory.length), lost.handler());
  EXPECT_EQ(lost.wait(200ms), nullptr);
  peer.signal(SIGKILL);
  const answer* const told = lost.wait(5s);
  ASSERT_NE(told, nullptr) << "not within five seconds";
  ASSERT_FALSE(*told) << "nothing proves that nobody writes any more";
  EXPECT_EQ(told->error().code, error_code::indeterminate) << told->error().text();
  EXPECT_EQ(own.rt->pinned().in_flight_transfers(), 1u);
  const auto report = own.rt->async_shutdown(own.rt->now() + 5s, holdfast::block);
  ASSERT_NO_FATAL_FAILURE(expect_balanced(own, report, 1));
  EXPECT_TRUE(report->clean()) << report->to_json();
  EXPECT_EQ(report->pinned.transfers_outstanding, 1u) << report->to_json();
  EXPECT_EQ(report->pinned.spans_quarantined, 1u) << report->to_json();
  EXPECT_EQ(report->pinned.arenas_not_submitted, 1u) << report->to_json();
  EXPECT_EQ(own.events(event_id::unmap_submitted), 0u) << "an unmap under a transfer";
}

}  // namespace holdfast::testing
