// The network card of one simulated host: its registration table.
//
// Why this exists: registering costs time, has limits, and can fail in ways that decide whether memory may be given
// back. The personality is `emulated`: the library's progress calls move the bytes (over the fabric's links, which
// have latency, bandwidth and a queue), so this card has no engine of its own that writes on its own account; or it is
// `rdma` (a setting of the driver), and queue pairs move bytes without anybody's progress (sim/drivers/ucp_rdma.cpp).
//
// Faults it makes: point nic.register (refuse, limit, delay, never, short) and nic.deregister (slow, never, error,
// lie); with queue pairs nic.device (fatal, port_down) and remote access errors, which the driver raises from the
// registrations that stand here. In the emulated personality nothing above would see those.
//
// Ownership   One for each host; its entries live in host_memory, beside the pages that they pin.
// Units       Bytes, virtual nanoseconds.
// Threading   One OS thread. `begin_*` says how long the call takes; the caller lets that time pass outside kernel
//             scope and then calls `finish_*`.
// Failure     By value; misuse of memory is reported by host_memory.
#pragma once

#include <sim/hardware/host_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

namespace holdfast::sim {

struct nic_settings {
  std::int64_t register_base_ns = 20'000;
  std::int64_t register_ns_per_mib = 60'000;
  std::int64_t deregister_base_ns = 10'000;
  std::int64_t deregister_ns_per_mib = 5'000;
  std::size_t registrations_max = 1'000'000;
  /// Registered bytes of the process, as RLIMIT_MEMLOCK bounds them.
  std::uint64_t registered_bytes_max = std::numeric_limits<std::uint64_t>::max();
  std::size_t region_bytes_max = std::numeric_limits<std::size_t>::max();
};

enum class registration_answer : std::uint8_t { ok, no_memory, limit, bad_range, device_lost };

struct registration_attempt {
  registration_answer answer = registration_answer::ok;
  std::int64_t duration_ns = 0;
  bool never = false;  // the call does not return
  std::byte* base = nullptr;
  std::size_t bytes = 0;
};

struct deregistration_attempt {
  std::int64_t duration_ns = 0;
  bool never = false;
  bool takes_effect = true;  // false: the pages stay pinned, whatever is answered
};

class nic {
 public:
  explicit nic(host& h) : host_(h) {}
  nic(const nic&) = delete;
  nic& operator=(const nic&) = delete;

  nic_settings settings;

  /// Whole pages that enclose the range. Faults and limits are decided now, effects come with `finish`.
  registration_attempt begin_register(const std::byte* base, std::size_t bytes);
  /// Number of the registration, 0 if the attempt was not ok (or the memory went away meanwhile).
  std::uint64_t finish_register(registration_attempt& attempt, std::uint64_t context);
  deregistration_attempt begin_deregister(std::uint64_t registration);
  void finish_deregister(std::uint64_t registration, const deregistration_attempt& attempt);

  /// The device is broken for good: nothing can be registered or reached through it; what is registered stays pinned
  /// until its context is closed. [kernel]
  void fail();
  bool failed() const noexcept { return failed_; }
  /// A port that is down moves nothing; what waits goes on when it is up again. [kernel]
  void set_port(bool up);
  bool port_up() const noexcept { return port_up_; }
  /// The machine has another card from here on.
  void replace();
  /// `what` runs when the device fails, in kernel scope, unless `alive` expired.
  void on_failure(std::weak_ptr<const char> alive, std::function<void()> what);

 private:
  struct watcher {
    std::weak_ptr<const char> alive;
    std::function<void()> what;
  };
  host& host_;
  bool failed_ = false;
  bool port_up_ = true;
  std::vector<watcher> watchers_;
};

nic& nic_of(host& h);

}  // namespace holdfast::sim
