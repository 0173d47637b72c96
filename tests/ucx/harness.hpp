// What the tests over real UCX share: a side of our own, and a peer in another process.
//
// A peer is this same program, executed anew with `--peer`: nothing is forked after a thread was started. It maps
// memory with a known pattern, prints one line that says where, and serves until its standard input ends.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/ucx/load.hpp>
#include <holdfast/backends/ucx/wire_ucx.hpp>
#include <holdfast/base/block.hpp>
#include <holdfast/base/peer.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/telemetry/event_log.hpp>
#include <holdfast/transport/transport.hpp>

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::testing {

namespace tp = holdfast::transport;
using namespace std::chrono_literals;

std::byte pattern(std::uint64_t seed, std::size_t at) noexcept;

/// One process's side: host, log, transport.
class side {
 public:
  explicit side(tp::settings values = {}, ucx::wire_settings wire = {}, tp::loss_handler lost = {});
  /// Tears down if the test did not.
  ~side();
  tp::transport& net() { return *transport_; }
  void drop_transport() { transport_.reset(); }
  platform::host& host() { return host_; }
  event_log& log() { return log_; }
  platform::time_point in(platform::duration d) const { return host_.clock().now() + d; }
  /// Ends the transport; the report and whether a witness came. The transport object stays.
  tp::teardown_result teardown(platform::duration bound);
  /// The transport as an error, if it could not be made.
  const std::optional<error>& failure() const { return failure_; }

  /// Events of one kind, oldest first.
  std::vector<event_record> events(event_id id) const;
  /// Waits until `count` events of that kind are in the log.
  bool wait_for(event_id id, std::size_t count, platform::duration bound) const;

 private:
  platform::host host_{2};
  event_log log_;
  std::unique_ptr<tp::transport> transport_;
  std::optional<error> failure_;
  bool torn_down_ = false;
};

/// Checks TP-I1 over everything a log saw: each accepted operation ended once.
void expect_every_operation_ended_once(const side& s);

/// Pages that are registered with a side.
class registered {
 public:
  registered(side& of, std::size_t bytes);
  /// Unmaps, if the transport still does, and frees.
  ~registered();
  std::byte* data() { return base_; }
  std::size_t size() const { return bytes_; }
  const tp::registered_memory& memory() const { return memory_; }

 private:
  side& of_;
  std::byte* base_ = nullptr;
  std::size_t bytes_;
  tp::registered_memory memory_;
};

/// A process that serves memory filled with `pattern(seed, i)`.
class peer_process {
 public:
  struct options {
    std::size_t bytes = 1 << 20;
    std::uint64_t seed = 1;
    std::uint64_t worker_id = 0;
    std::uint64_t incarnation = 0;
    std::string connect_to = {};  // connects there once it serves
    bool again = false;           // connects there and closes over and over, whether or not anybody answers
  };
  explicit peer_process(const options& how);
  /// Ends its input, waits, and kills it if it does not end.
  ~peer_process();
  peer_process(const peer_process&) = delete;

  void signal(int number);
  /// Ends its input and waits; its exit status, or nothing if it had to be killed.
  std::optional<int> finish();

  std::string address;
  peer_id identity;
  remote_reference memory;

 private:
  pid_t pid_ = -1;
  int to_child_ = -1;
  int from_child_ = -1;
};

/// main of a peer; `arguments` as `peer_process` passes them.
int run_peer(const std::vector<std::string>& arguments);

/// A GET whose end can be waited for. Counts how often it ended; must end once before it is destroyed.
class waited_get {
 public:
  struct ending {
    tp::transfer_outcome outcome;
    error why;
  };
  waited_get(side& from, const peer_id& peer, const remote_reference& source, std::size_t offset, registered& into,
             std::size_t bytes, bool wanted = true);
  /// Waits for the end, since the destination goes next.
  ~waited_get();
  waited_get(const waited_get&) = delete;
  /// What the submission answered.
  const result<void>& submitted() const { return submitted_; }
  std::optional<ending> wait(std::chrono::nanoseconds bound);
  unsigned times_ended() const;
  /// How often the waiter was told that the fate is unknown before the end; waits until it was, or for `bound`.
  unsigned times_orphaned(std::chrono::nanoseconds bound = {});

 private:
  struct shared {
    mutable std::mutex mutex;
    std::condition_variable changed;
    std::optional<ending> end;
    unsigned times = 0;
    unsigned orphaned = 0;
  };
  std::shared_ptr<shared> shared_ = std::make_shared<shared>();
  result<void> submitted_;
};

}  // namespace holdfast::testing
