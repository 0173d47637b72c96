// Simulated atomics: sequentially consistent, each operation a scheduling point. Clauses A1 and A2.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <sim/kernel/race_watch.hpp>

#include <atomic>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::platform {

namespace detail {
void atomic_point(std::uint32_t& object, unsigned kind) noexcept;  // 0 load, 1 store, 2 read-modify-write
}

template <class T>
class atomic {
 public:
  using value_type = T;
  constexpr atomic() noexcept = default;
  constexpr atomic(T value) noexcept : value_(value) {}  // NOLINT: as std::atomic
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  HOLDFAST_UNWATCHED T load(std::memory_order = std::memory_order_seq_cst) const noexcept {
    detail::atomic_point(object_, 0);
    return value_;
  }
  HOLDFAST_UNWATCHED void store(T value, std::memory_order = std::memory_order_seq_cst) noexcept {
    detail::atomic_point(object_, 1);
    value_ = value;
  }
  HOLDFAST_UNWATCHED T exchange(T value, std::memory_order = std::memory_order_seq_cst) noexcept {
    detail::atomic_point(object_, 2);
    const T old = value_;
    value_ = value;
    return old;
  }
  HOLDFAST_UNWATCHED bool compare_exchange_strong(T& expected, T desired, std::memory_order = std::memory_order_seq_cst,
                                                  std::memory_order = std::memory_order_seq_cst) noexcept {
    detail::atomic_point(object_, 2);
    if (value_ == expected) {
      value_ = desired;
      return true;
    }
    expected = value_;
    return false;
  }
  // Never fails spuriously: a loop around it hides that anyway.
  bool compare_exchange_weak(T& expected, T desired, std::memory_order a = std::memory_order_seq_cst,
                             std::memory_order b = std::memory_order_seq_cst) noexcept {
    return compare_exchange_strong(expected, desired, a, b);
  }
  HOLDFAST_UNWATCHED T fetch_add(T by, std::memory_order = std::memory_order_seq_cst) noexcept {
    detail::atomic_point(object_, 2);
    const T old = value_;
    value_ = static_cast<T>(old + by);
    return old;
  }
  HOLDFAST_UNWATCHED T fetch_sub(T by, std::memory_order = std::memory_order_seq_cst) noexcept {
    detail::atomic_point(object_, 2);
    const T old = value_;
    value_ = static_cast<T>(old - by);
    return old;
  }
  HOLDFAST_UNWATCHED T fetch_or(T bits, std::memory_order = std::memory_order_seq_cst) noexcept {
    detail::atomic_point(object_, 2);
    const T old = value_;
    value_ = static_cast<T>(old | bits);
    return old;
  }
  HOLDFAST_UNWATCHED T fetch_and(T bits, std::memory_order = std::memory_order_seq_cst) noexcept {
    detail::atomic_point(object_, 2);
    const T old = value_;
    value_ = static_cast<T>(old & bits);
    return old;
  }

 private:
  T value_{};
  mutable std::uint32_t object_ = 0;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
