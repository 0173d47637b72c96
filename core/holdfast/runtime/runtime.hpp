// The one object an embedder creates: it owns one process's core, in an order of birth and death.
//
// Why this exists: nothing of the core is global, and somebody has to know all parts: who is made first, who is stopped
// first, and what is left when a step of the shutdown did not end (spec/runtime).
//
// Ownership   Move-only. The host outlives it. Destroyed without a shutdown it makes no driver call and waits for
//             nobody: what is registered leaks, with one event for each block. Buffers may outlive it.
// Units       Absolute deadlines on the host's clock; bytes.
// Threading   Everything but `create` and the destructor from any thread.
// Failure     By value. After a failed `create` no thread, descriptor or registration is left.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/intrusive_ptr.hpp>
#include <holdfast/pinned/pool.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/runtime/device.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

struct runtime_options {
  pinned::settings pinned;
  /// Events kept for a report; 0 keeps none.
  std::size_t recorded_events = 4096;
  event_level recorded_level = event_level::debug;
};

struct runtime_report {
  pinned::shutdown_report pinned;
  pinned::released_report released;
  /// Whether worker and context are known to be gone.
  bool witnessed = false;
  std::uint64_t device_operations = 0;
  std::uint64_t device_registrations = 0;
  /// Charged at the very end, after the witness.
  std::uint64_t bytes_registered = 0;
  std::int64_t took_ns = 0;

  /// Nothing is left: every number of what is left is zero, and the device is known to be gone.
  bool clean() const noexcept;
  std::string to_json() const;
};

class runtime {
 public:
  /// Errors: those of the options, of the device, and out_of_memory.
  static result<runtime> create(platform::host& host, const runtime_options& options, device_factory make_device);
  runtime(runtime&&) noexcept;
  runtime& operator=(runtime&&) = delete;
  ~runtime();

  pinned::memory& pinned() noexcept;
  /// Connections to peers; null if the device has none.
  transport::transport* peers() noexcept;
  std::uint64_t incarnation() const noexcept;
  event_log& events() noexcept;
  platform::time_point now() const noexcept;

  /// Users stop first, owners give back after them: pinned memory, the device, what its witness proves. One deadline:
  /// void(result<runtime_report>). Later callers join and get the same report; one whose deadline comes before that of the
  /// shutdown that runs (his own earlier one, or the runtime's after its device failed) is told `timed_out` then, while
  /// it goes on, and may ask again. Cancelling gives up the notification; errors: timed_out, cancelled, out_of_memory,
  /// shutting_down (the executor was stopped).
  template <class Token>
  auto async_shutdown(platform::time_point deadline, Token&& token) {
    return boost::asio::async_initiate<Token, void(result<runtime_report>)>(
        [](auto handler, runtime* self, platform::time_point until) {
          self->start_shutdown(until, shutdown_handler(std::move(handler)));
        },
        token, this, deadline);
  }

 private:
  using shutdown_handler = boost::asio::any_completion_handler<void(result<runtime_report>)>;
  class parts;
  explicit runtime(intrusive_ptr<parts> owned) noexcept;
  void start_shutdown(platform::time_point deadline, shutdown_handler handler);

  intrusive_ptr<parts> parts_;
};

}  // namespace holdfast::inline HOLDFAST_ABI
