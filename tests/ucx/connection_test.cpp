// Proves what real UCX connections are worth: bad hellos, strangers, used ports, stopped and absent peers, both sides
// connecting at once, and a machine without UCX, each ends in one clear answer and leaves the transport working.
#include <holdfast/platform/abi.hpp>

#include "tests/ucx/harness.hpp"

#include <holdfast/backends/ucx/address.hpp>
#include <holdfast/transport/hello.hpp>

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast::testing {
namespace {

std::size_t threads_now() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

std::size_t descriptors_now() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

// A peer that speaks UCX and says whatever it likes.
class stranger final : public tp::wire_sink, public tp::wire_operation {
 public:
  stranger() : log_(host_.clock()) {
    auto table = ucx::load_ucp(log_);
    EXPECT_TRUE(table);
    auto made = ucx::make_wire(*table, log_, {});
    EXPECT_TRUE(made);
    wire_ = std::move(*made);
    EXPECT_TRUE(wire_->open_worker(*this));
  }
  ~stranger() {
    wire_->destroy_worker();
    wire_->close_context();
  }
  /// Sends `bytes` as the first message and progresses until the other side ends the connection.
  bool say_and_be_refused(std::string_view address, std::vector<std::byte> bytes, std::uint16_t kind = tp::hello_kind) {
    bytes_ = std::move(bytes);
    const auto endpoint = wire_->connect(address, this);
    EXPECT_TRUE(endpoint);
    const tp::posted answer = wire_->send(*endpoint, kind, bytes_, *this);
    EXPECT_NE(answer.exit, tp::post_exit::refused);
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!failed_ && std::chrono::steady_clock::now() < deadline) wire_->progress();
    tp::posted closed = wire_->close(*endpoint, true, *this);
    EXPECT_EQ(closed.exit, tp::post_exit::inline_done);
    for (int i = 0; i < 100; ++i) wire_->progress();
    return failed_;
  }

 private:
  void connection_requested(tp::wire_connection_request) noexcept override {}
  void endpoint_failed(void*, int) noexcept override { failed_ = true; }
  void message_received(void*, std::uint16_t, std::span<const std::byte>, bool) noexcept override {}
  void called_back(int) noexcept override {}

  platform::host host_;
  event_log log_;
  std::unique_ptr<tp::wire> wire_;
  std::vector<std::byte> bytes_;
  bool failed_ = false;
};

std::vector<std::byte> encoded(const tp::hello& message) {
  tp::encoded_hello out;
  tp::encode_hello(message, out);
  return {out.whole().begin(), out.whole().end()};
}

std::vector<std::byte> good_hello() {
  tp::hello message;
  message.sender = {11, 22};
  message.connection = 1;
  return encoded(message);
}

struct refused_hello {
  const char* what;
  std::vector<std::byte> bytes;
  tp::hello_refusal reason;
};

TEST(ucx_connection, a_bad_hello_is_refused_with_its_reason_and_the_transport_goes_on) {
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  std::vector<refused_hello> cases;
  cases.push_back({"garbage", std::vector<std::byte>(80, std::byte{0x5a}), tp::hello_refusal::magic});
  cases.push_back({"truncated", good_hello(), tp::hello_refusal::limits});
  cases.back().bytes.resize(tp::hello_bytes - 1);
  cases.push_back({"too long", good_hello(), tp::hello_refusal::limits});
  cases.back().bytes.resize(4096);
  cases.push_back({"future form", good_hello(), tp::hello_refusal::version});
  cases.back().bytes[4] = std::byte{9};
  cases.push_back({"no identity", good_hello(), tp::hello_refusal::identity});
  for (std::size_t i = 16; i < 24; ++i) cases.back().bytes[i] = std::byte{0};
  tp::hello ourselves;
  ourselves.sender = own.net().self();
  ourselves.connection = 1;
  cases.push_back({"ourselves", encoded(ourselves), tp::hello_refusal::self});

  std::size_t refused = 0;
  for (const refused_hello& one : cases) {
    stranger other;
    EXPECT_TRUE(other.say_and_be_refused(own.net().listen_address(), one.bytes)) << one.what;
    ASSERT_TRUE(own.wait_for(event_id::hello_refused, ++refused, 10s)) << one.what;
    EXPECT_EQ(own.events(event_id::hello_refused).back().fields[1], static_cast<std::uint64_t>(one.reason)) << one.what;
  }
  EXPECT_EQ(own.events(event_id::hello_accepted).size(), 1u) << "only the start-up probe's own";

  peer_process peer({.bytes = 4096});
  const auto connected = own.net().async_connect(peer.address, peer.identity, holdfast::block);
  EXPECT_TRUE(connected) << connected.error().text();
}

TEST(ucx_connection, a_socket_that_speaks_no_ucx_does_no_harm) {
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  const auto where = ucx::parse_address(own.net().listen_address());
  ASSERT_TRUE(where);
  const int socket = ::socket(where->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(socket, 0);
  ASSERT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&where->storage), where->bytes), 0);
  const std::vector<char> noise(16384, 'x');
  EXPECT_GT(::send(socket, noise.data(), noise.size(), MSG_NOSIGNAL), 0);
  ::shutdown(socket, SHUT_WR);

  peer_process peer({.bytes = 4096, .seed = 4});
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
  registered into(own, 4096);
  waited_get get(own, peer.identity, peer.memory, 0, into, 4096);
  ASSERT_TRUE(get.submitted());
  const auto end = get.wait(10s);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->outcome, tp::transfer_outcome::ok);
  ::close(socket);
}

TEST(ucx_connection, a_used_port_is_one_clear_error_and_leaves_nothing_behind) {
  side first;
  ASSERT_FALSE(first.failure()) << first.failure()->text();
  tp::settings values;
  values.listen_address = std::string(first.net().listen_address());
  const std::size_t threads = threads_now();
  {
    side second(values);
    ASSERT_TRUE(second.failure());
    EXPECT_NE(second.failure()->text().find(values.listen_address), std::string::npos) << second.failure()->text();
    EXPECT_EQ(second.events(event_id::transport_state).back().fields[1], 1u) << "the transport is absent";
  }
  EXPECT_EQ(threads_now(), threads);
}

TEST(ucx_connection, a_transport_that_ended_leaves_no_descriptor_and_no_thread) {
  {
    side warm;  // what the library itself keeps until the process ends is there now
  }
  const std::size_t threads = threads_now();
  const std::size_t descriptors = descriptors_now();
  {
    side own;
    ASSERT_FALSE(own.failure()) << own.failure()->text();
    EXPECT_TRUE(own.teardown(5s).proof.has_value());
  }
  EXPECT_EQ(threads_now(), threads);
  EXPECT_EQ(descriptors_now(), descriptors);
}

TEST(ucx_connection, a_machine_without_ucx_answers_absent_with_one_sentence) {
  platform::host host;
  event_log log(host.clock(), 64, event_level::trace);
  const std::size_t threads = threads_now();
  const std::size_t descriptors = descriptors_now();
  const auto table = ucx::load_ucp(log, "libucp-that-is-not-there.so.0");
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, error_code::absent);
  EXPECT_NE(table.error().text().find("libucp-that-is-not-there.so.0"), std::string::npos) << table.error().text();
  auto made = tp::transport::create(
      host, log, [&]() -> result<std::unique_ptr<tp::wire>> { return std::unexpected(table.error()); }, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::absent);
  EXPECT_EQ(threads_now(), threads);
  EXPECT_EQ(descriptors_now(), descriptors);
}

TEST(ucx_connection, transports_that_do_not_exist_are_absent_with_the_librarys_words) {
  side own({}, {.transports = "no_such_transport"});
  ASSERT_TRUE(own.failure());
  EXPECT_EQ(own.failure()->code, error_code::absent) << own.failure()->text();
}

TEST(ucx_connection, an_address_where_nobody_listens_is_unreachable) {
  std::string gone;
  {
    side other;
    ASSERT_FALSE(other.failure());
    gone = std::string(other.net().listen_address());
  }
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  const auto answer = own.net().async_connect(gone, peer_id{}, holdfast::block);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, error_code::unreachable) << answer.error().text();
  const auto wrong = own.net().async_connect("no address", peer_id{}, holdfast::block);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, error_code::invalid_argument) << wrong.error().text();
}

TEST(ucx_connection, a_stopped_peer_lets_the_attempt_time_out) {
  peer_process peer({.bytes = 4096});
  tp::settings values;
  values.connect_timeout = 500ms;
  side own(values);
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  peer.signal(SIGSTOP);
  const auto answer = own.net().async_connect(peer.address, peer.identity, holdfast::block);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, error_code::timed_out) << answer.error().text();
  EXPECT_TRUE(own.teardown(5s).proof.has_value());
  expect_every_operation_ended_once(own);
}

TEST(ucx_connection, a_stopped_idle_peer_does_not_hold_up_the_teardown_and_its_close_is_swept) {
  peer_process peer({.bytes = 4096});
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
  peer.signal(SIGSTOP);
  const auto before = std::chrono::steady_clock::now();
  const auto ended = own.teardown(2s);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 4s);
  EXPECT_TRUE(ended.proof.has_value());
  EXPECT_EQ(ended.report.swept, 1u) << "the flushing close";
  expect_every_operation_ended_once(own);
}

TEST(ucx_connection, somebody_else_at_the_expected_address_is_refused) {
  peer_process peer({.bytes = 4096});
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  peer_id another_life = peer.identity;
  ++another_life.incarnation;
  const auto stale = own.net().async_connect(peer.address, another_life, holdfast::block);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, error_code::stale_key) << stale.error().text();
  const auto stranger_there =
      own.net().async_connect(peer.address, peer_id{peer.identity.worker_id + 1, 0}, holdfast::block);
  ASSERT_FALSE(stranger_there);
  EXPECT_EQ(stranger_there.error().code, error_code::unreachable) << stranger_there.error().text();
}

TEST(ucx_connection, a_peers_death_is_told_once_and_an_orderly_close_is_none) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<tp::peer_loss> told;
  peer_process closed({.bytes = 4096});
  peer_process killed({.bytes = 4096});
  side own({}, {}, [&](const tp::peer_loss& what) {
    const std::scoped_lock lock(mutex);
    told.push_back(what);
    changed.notify_all();
  });
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ASSERT_TRUE(own.net().async_connect(closed.address, closed.identity, holdfast::block));
  ASSERT_TRUE(own.net().async_connect(killed.address, killed.identity, holdfast::block));
  ASSERT_TRUE(own.net().async_close(closed.identity, own.in(5s), holdfast::block));
  killed.signal(SIGKILL);
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, 10s, [&] { return !told.empty(); }));
  }
  EXPECT_TRUE(own.teardown(5s).proof.has_value());
  const auto lost = own.events(event_id::peer_lost);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(own.events(event_id::loss_sent).size(), 1u);
  const std::scoped_lock lock(mutex);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told.front().peer, killed.identity);
  EXPECT_EQ(told.front().connection, lost.front().fields[2]);
  EXPECT_EQ(told.front().reason, tp::loss_reason::error);
}

TEST(ucx_connection, two_sides_that_connect_at_once_end_with_one_connection) {
  side a;
  side b;
  ASSERT_FALSE(a.failure());
  ASSERT_FALSE(b.failure());
  const std::string address_a(a.net().listen_address());
  const std::string address_b(b.net().listen_address());
  for (int round = 0; round < 5; ++round) {
    result<peer_id> from_b;
    std::thread other([&] { from_b = b.net().async_connect(address_a, a.net().self(), holdfast::block); });
    const auto from_a = a.net().async_connect(address_b, b.net().self(), holdfast::block);
    other.join();
    ASSERT_TRUE(from_a) << from_a.error().text();
    ASSERT_TRUE(from_b) << from_b.error().text();
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    const auto living = [](side& s) {
      const auto counts = s.net().snapshot().connections;
      std::uint64_t sum = 0;
      // A closed one may stay as a record, with its data endpoint, until the worker is destroyed.
      for (std::size_t i = 0; i < counts.size(); ++i)
        if (i != static_cast<std::size_t>(tp::connection_state::closed)) sum += counts[i];
      return sum;
    };
    while ((living(a) > 1 || living(b) > 1) && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(a.net().is_ready(b.net().self())) << round;
    EXPECT_TRUE(b.net().is_ready(a.net().self())) << round;
    EXPECT_EQ(living(a), 1u);
    EXPECT_EQ(living(b), 1u);
    EXPECT_TRUE(a.events(event_id::peer_lost).empty());
    const auto closed = a.net().async_close(b.net().self(), a.in(5s), holdfast::block);
    EXPECT_TRUE(closed);
    while ((living(a) > 0 || living(b) > 0) && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  }
  EXPECT_TRUE(a.teardown(5s).proof.has_value());
  EXPECT_TRUE(b.teardown(5s).proof.has_value());
  expect_every_operation_ended_once(a);
  expect_every_operation_ended_once(b);
}

TEST(ucx_connection, a_transport_destroyed_without_a_teardown_calls_the_library_no_more_and_says_so) {
  platform::host host;
  event_log log(host.clock(), 4096, event_level::trace);
  auto table = ucx::load_ucp(log);
  ASSERT_TRUE(table);
  auto made = tp::transport::create(host, log, [&] { return ucx::make_wire(*table, log, {}); }, {});
  ASSERT_TRUE(made) << made.error().text();
  const std::size_t threads = threads_now();
  made->reset();
  EXPECT_EQ(threads_now(), threads - 2) << "progress and registration thread";
  std::size_t said = 0;
  for (const event_record& e : log.copy_recent()) said += e.id == event_id::teardown_hung;
  EXPECT_EQ(said, 1u);
}

}  // namespace
}  // namespace holdfast::testing
