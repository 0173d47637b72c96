// What a runtime needs of a device: the backend that pinned memory registers with, and its end.
//
// Why this exists: the end of a device is what proves that memory is out of reach. Each kind of device ends in its own
// way; the runtime only decides when.
//
// Ownership   Owned by the runtime, outlives its pinned memory. Destroyed without an end, it makes no driver call.
// Units       Absolute deadlines.
// Threading   `begin_end` once, from any thread; the answer comes on any thread, with no lock held.
// Failure     By value in the answer.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/witness.hpp>
#include <holdfast/pinned/backend.hpp>
#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace holdfast::inline HOLDFAST_ABI {

namespace transport {
class transport;
}

struct device_end {
  /// None: the destructions did not return, or the device ended before.
  std::optional<witness> proof;
  std::uint64_t operations = 0;     // left in its table
  std::uint64_t registrations = 0;  // left registered
  std::uint64_t unconfirmed = 0;    // unmaps without confirmation, which the proof covers
};

class device {
 public:
  virtual ~device() = default;
  virtual pinned::backend& backend() noexcept = 0;
  /// Connections to peers; null if this kind of device has none.
  virtual transport::transport* peers() noexcept { return nullptr; }
  /// `told` is called on the executor if the device fails for good and ends by itself; what was registered with it
  /// stays so until `begin_end`. Errors: out_of_memory.
  virtual result<void> when_failed(std::move_only_function<void()> told) noexcept {
    static_cast<void>(told);
    return {};
  }
  /// Ends the device, until `deadline`. `told` is called once, also if the deadline passed; it may be called at once.
  virtual void begin_end(platform::time_point deadline, std::move_only_function<void(result<device_end>)> told) = 0;
};

/// Makes a runtime's device. Called once, before anything uses it; after an error nothing of it is left.
using device_factory =
    std::move_only_function<result<std::unique_ptr<device>>(platform::host&, event_log&, std::uint64_t incarnation)>;

}  // namespace holdfast::inline HOLDFAST_ABI
