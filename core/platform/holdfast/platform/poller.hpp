// Real poller: poll(2) over foreign descriptors and one event descriptor of its own. Clauses L1 to L5.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/clock.hpp>

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <expected>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::platform {

class host;

/// Why a wait ended; several bits may be set.
enum class wake_cause : std::uint8_t { none = 0, woken = 1, descriptor = 2, deadline = 4 };
constexpr wake_cause operator|(wake_cause a, wake_cause b) noexcept {
  return static_cast<wake_cause>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr bool operator&(wake_cause a, wake_cause b) noexcept {
  return (static_cast<std::uint8_t>(a) & static_cast<std::uint8_t>(b)) != 0;
}

/// One sleeper, any number of wakers.
class poller {
 public:
  /// The error is an errno value.
  static std::expected<poller, int> create(host& host) noexcept;
  poller(poller&& other) noexcept;
  poller& operator=(poller&& other) noexcept;
  ~poller();

  /// Watches `descriptor` for readability; it stays the caller's. False: no memory, nothing new is watched.
  bool add(int descriptor) noexcept;
  /// Sleeps until a wake is pending, a descriptor is readable, or the deadline. A pending wake stays pending
  /// until `drain_wakes`. `none`: the system could not poll for want of memory; try again.
  wake_cause wait(time_point deadline) noexcept;
  /// Makes the current or next wait return. Callable from any thread.
  void wake() noexcept;
  /// Forgets pending wakes.
  void drain_wakes() noexcept;
  /// A short pause in a spinning loop; returns at once on the real side, may advance time until
  /// `deadline` or an event in the simulator.
  void relax(time_point /*deadline*/) noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
  }

 private:
  poller() noexcept = default;
  int event_descriptor_ = -1;
  // The descriptor may be readable: a waker says so before it writes, and a wait says so that saw it. While neither did,
  // there is nothing to forget, and the system is not asked.
  std::atomic<bool> announced_{false};
  bool seen_ = false;
  // The own descriptor first, in the form that poll(2) takes, so that a wait allocates nothing.
  std::vector<pollfd> watched_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
