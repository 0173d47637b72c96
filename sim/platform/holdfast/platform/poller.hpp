// Simulated poller over simulated descriptors. Clauses L1 to L5.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/clock.hpp>

#include <cstdint>
#include <expected>
#include <utility>

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
  static std::expected<poller, int> create(host& host) noexcept;
  poller(poller&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  poller& operator=(poller&& other) noexcept;
  ~poller();

  bool add(int descriptor) noexcept;
  wake_cause wait(time_point deadline) noexcept;
  void wake() noexcept;
  void drain_wakes() noexcept;
  /// Blocks until `deadline`, a wake, or a readable descriptor: a fiber that spins would stop time.
  void relax(time_point deadline) noexcept;

 private:
  struct state;
  poller() noexcept = default;
  wake_cause sleep(time_point deadline) noexcept;
  void rest(time_point deadline) noexcept;
  state* state_ = nullptr;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
