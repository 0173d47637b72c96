// Archetype of L1 to L5: no default state, no descriptor of its own to look at.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/clock.hpp>

#include <cstdint>
#include <expected>

namespace holdfast::inline HOLDFAST_ABI::platform {

class host;

enum class wake_cause : std::uint8_t { none = 0, woken = 1, descriptor = 2, deadline = 4 };
constexpr wake_cause operator|(wake_cause a, wake_cause b) noexcept {
  return static_cast<wake_cause>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr bool operator&(wake_cause a, wake_cause b) noexcept {
  return (static_cast<std::uint8_t>(a) & static_cast<std::uint8_t>(b)) != 0;
}

class poller {
 public:
  poller() = delete;
  static std::expected<poller, int> create(host& host) noexcept;
  poller(poller&& other) noexcept;
  poller& operator=(poller&& other) noexcept;
  ~poller();

  bool add(int descriptor) noexcept;
  wake_cause wait(time_point deadline) noexcept;
  void wake() noexcept;
  void drain_wakes() noexcept;
  void relax(time_point deadline) noexcept;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
