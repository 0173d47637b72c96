// Archetype of A1 and A2: no wait, no is_lock_free, no conversion, no operators.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <atomic>
#include <concepts>
#include <type_traits>

namespace holdfast::inline HOLDFAST_ABI::platform {

/// T is an integer, an enumeration, a bool or a pointer.
template <class T>
  requires(std::is_integral_v<T> || std::is_enum_v<T> || std::is_pointer_v<T>)
class atomic {
 public:
  constexpr atomic() noexcept = default;
  constexpr atomic(T initial) noexcept : value_(initial) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  // Bodies, because a template over a type without linkage may not be used undefined. They are never run.
  T load(std::memory_order = std::memory_order_seq_cst) const noexcept { return value_; }
  void store(T value, std::memory_order = std::memory_order_seq_cst) noexcept { value_ = value; }
  T exchange(T, std::memory_order = std::memory_order_seq_cst) noexcept { return value_; }
  bool compare_exchange_strong(T&, T, std::memory_order = std::memory_order_seq_cst) noexcept { return true; }
  bool compare_exchange_strong(T&, T, std::memory_order, std::memory_order) noexcept { return true; }
  bool compare_exchange_weak(T&, T, std::memory_order = std::memory_order_seq_cst) noexcept { return true; }
  bool compare_exchange_weak(T&, T, std::memory_order, std::memory_order) noexcept { return true; }

  T fetch_add(T, std::memory_order = std::memory_order_seq_cst) noexcept
    requires(std::integral<T> && !std::same_as<T, bool>)
  {
    return value_;
  }
  T fetch_sub(T, std::memory_order = std::memory_order_seq_cst) noexcept
    requires(std::integral<T> && !std::same_as<T, bool>)
  {
    return value_;
  }
  T fetch_or(T, std::memory_order = std::memory_order_seq_cst) noexcept
    requires(std::integral<T> && !std::same_as<T, bool>)
  {
    return value_;
  }
  T fetch_and(T, std::memory_order = std::memory_order_seq_cst) noexcept
    requires(std::integral<T> && !std::same_as<T, bool>)
  {
    return value_;
  }

 private:
  T value_{};
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
