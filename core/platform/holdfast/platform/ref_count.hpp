// Real reference count. Clauses R1 to R3.
//
// Why not std::shared_ptr: which of two owners lets go last decides who destroys an arena; the simulator
// must see that decrement to try both orders.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <atomic>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::platform {

class ref_count {
 public:
  explicit ref_count(std::uint32_t initial = 1) noexcept : count_(initial) {}
  void increment() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  /// True for exactly one caller: the one that took the count to zero.
  bool decrement() noexcept { return count_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  /// Weak to strong: false once the count was zero.
  bool increment_unless_zero() noexcept {
    std::uint32_t seen = count_.load(std::memory_order_relaxed);
    while (seen != 0)
      if (count_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_relaxed))
        return true;
    return false;
  }
  /// For reports only: stale as soon as it is read.
  std::uint32_t observed() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> count_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
