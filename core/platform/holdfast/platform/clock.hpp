// Real clock: steady, nanoseconds. Clauses C1 and C2 of holdfast/platform_contract.hpp.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <chrono>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::platform {

/// Source of time of one host. An object, not a global: core asks the host it was given.
class clock {
 public:
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<clock, duration>;
  static constexpr bool is_steady = true;

  time_point now() const noexcept {
    return time_point{std::chrono::duration_cast<duration>(std::chrono::steady_clock::now().time_since_epoch())};
  }
};

using time_point = clock::time_point;
using duration = clock::duration;
/// A deadline that never comes.
inline constexpr time_point never = time_point::max();

}  // namespace holdfast::inline HOLDFAST_ABI::platform
