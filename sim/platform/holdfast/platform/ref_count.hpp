// Simulated reference count: the decrement is a scheduling point, so that both orders of a last release are tried.
// Clauses R1 to R3.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <sim/kernel/race_watch.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::platform {

class ref_count {
 public:
  explicit ref_count(std::uint32_t initial = 1) noexcept : count_(initial) {}
  HOLDFAST_UNWATCHED void increment() noexcept { ++count_; }
  bool decrement() noexcept;
  bool increment_unless_zero() noexcept;
  HOLDFAST_UNWATCHED std::uint32_t observed() const noexcept { return count_; }

 private:
  std::uint32_t count_;
  std::uint32_t object_ = 0;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
