// Archetype of C1 and C2: a clock that only a host can supply.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <chrono>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::platform {

class clock {
 public:
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<clock, duration>;
  static constexpr bool is_steady = true;

  clock() = delete;
  clock(const clock&) = delete;
  clock& operator=(const clock&) = delete;
  time_point now() const noexcept;
};

using time_point = clock::time_point;
using duration = clock::duration;
/// A deadline that never comes.
inline constexpr time_point never = time_point::max();

}  // namespace holdfast::inline HOLDFAST_ABI::platform
