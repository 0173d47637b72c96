// Everything behind one transport that has to outlive its threads.
//
// Why this exists: if a thread is stuck inside the library for ever, all it could touch must stay valid for ever. It
// stands in one object, which the facade deletes after a clean end and leaks otherwise.
//
// Ownership   Owns wire, table, connections, threads. Refers to host and event log, which outlive it.
// Threading   Members say for themselves.
// Failure     `start` undoes what it did; see there.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/condition_variable.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/platform/poller.hpp>
#include <holdfast/platform/thread.hpp>
#include <holdfast/transport/capabilities.hpp>
#include <holdfast/transport/connections.hpp>
#include <holdfast/transport/operation.hpp>
#include <holdfast/transport/requests.hpp>
#include <holdfast/transport/progress.hpp>
#include <holdfast/transport/registration.hpp>
#include <holdfast/transport/settings.hpp>
#include <holdfast/transport/teardown.hpp>
#include <holdfast/transport/wire.hpp>

#include <functional>
#include <memory>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::transport {

/// In the order of the event `transport_state`.
enum class transport_state : std::uint8_t { probing, absent, running, closing, destroying, swept, gone, hung };

struct engine final : progress_client {
  engine(platform::host& its_host, event_log& its_log, std::unique_ptr<wire> its_wire, platform::poller its_poller,
         const settings& values, const peer_id& itself, std::shared_ptr<const loss_handler> watch);

  /// Starts both threads, opens the worker, listens. On failure nothing is left running and the context is closed,
  /// unless the library did not return within the start-up's bound: then `false` is in `may_delete`.
  result<void> start(bool& may_delete) noexcept;
  void move_to(transport_state state) noexcept;
  /// Both threads, after they left their loops.
  void join() noexcept;
  void abandon() noexcept;
  /// Makes both threads leave without calling the library again; true if they did so by the deadline.
  bool stand_down(platform::time_point deadline) noexcept;

  // progress_client
  bool step(platform::time_point now) noexcept override;
  bool has_work() const noexcept override { return connections.has_work(); }
  platform::time_point nearest_deadline() const noexcept override;
  bool finished() const noexcept override { return ending.finished(); }
  void arm_failed() noexcept override;

  result<void> when_failed(std::move_only_function<void()> told) noexcept;
  /// The owner goes: nobody is to be told any more.
  void forget_notice() noexcept;

  platform::host& host;
  event_log& log;
  const settings options;
  const peer_id self;
  // Destroyed bottom-up: threads first (they are joined before), then what they used, the wire last but the poller.
  platform::poller poller;
  std::unique_ptr<wire> library;
  operation_table table;
  call_book calls;
  connection_set connections;
  progress_loop loop;
  teardown ending;
  registration memory;
  platform::atomic<transport_state> state{transport_state::probing};
  platform::atomic<bool> get_works{false};
  std::string listen_address;
  /// What the start-up found; written by the thread that creates the transport, before anybody else sees it.
  capabilities found;
  /// Of the process that made it: a forked child has another one, and must not touch it.
  const std::uint64_t process = platform::process_number();

 private:
  /// Lives by itself once it was posted, since the owner may end the transport meanwhile.
  struct failure_notice final : work_item {
    explicit failure_notice(std::move_only_function<void()> f) noexcept : told(std::move(f)) {}
    void run() noexcept override {
      told();
      delete this;
    }
    void drop() noexcept override { delete this; }
    std::move_only_function<void()> told;
  };

  void progress_body() noexcept;
  void report_started(result<void> outcome) noexcept;
  void report_left() noexcept;

  platform::mutex mutex_{lock_ranks::transport_lifecycle};
  platform::condition_variable changed_;
  bool start_reported_ HOLDFAST_GUARDED_BY(mutex_) = false;
  bool progress_left_ HOLDFAST_GUARDED_BY(mutex_) = false;
  bool failed_ HOLDFAST_GUARDED_BY(mutex_) = false;
  std::unique_ptr<failure_notice> notice_ HOLDFAST_GUARDED_BY(mutex_);
  result<void> start_outcome_ HOLDFAST_GUARDED_BY(mutex_);
  platform::thread progress_thread_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
