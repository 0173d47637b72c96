// Identity that is issued, never derived from an address.
//
// Why this exists: an address, an index or a driver's handle may name something else tomorrow. What must not be
// confused with its predecessor carries a number that is given out once.
//
// Ownership   One source for each kind of thing, owned by the runtime or by the pool whose things it numbers.
// Units       64-bit numbers, rising, never 0 (0 = none).
// Threading   `issue` from any thread; it orders nothing else.
// Failure     When the numbers end the process stops: a reused one could give back somebody else's memory.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/atomic.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI {

class generation {
 public:
  /// `first` is the first number issued, not 0.
  explicit generation(std::uint64_t first = 1) noexcept;
  generation(const generation&) = delete;
  generation& operator=(const generation&) = delete;

  /// A number that no other call answered or will answer.
  std::uint64_t issue() noexcept;
  /// How many were issued, for reports: stale as soon as it is read.
  std::uint64_t issued() const noexcept;

 private:
  const std::uint64_t first_;
  platform::atomic<std::uint64_t> next_;
};

}  // namespace holdfast::inline HOLDFAST_ABI
