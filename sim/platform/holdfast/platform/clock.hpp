// Simulated clock: the world's virtual time. Clauses C1 and C2 of holdfast/platform_contract.hpp.
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

  /// Nanoseconds since the start of the run; 0 outside a world.
  time_point now() const noexcept;
};

using time_point = clock::time_point;
using duration = clock::duration;
inline constexpr time_point never = time_point::max();

}  // namespace holdfast::inline HOLDFAST_ABI::platform
