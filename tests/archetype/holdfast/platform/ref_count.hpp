// Archetype of R1 to R3.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::platform {

class ref_count {
 public:
  explicit ref_count(std::uint32_t initial = 1) noexcept;
  ~ref_count();
  ref_count(const ref_count&) = delete;
  ref_count& operator=(const ref_count&) = delete;
  void increment() noexcept;
  bool decrement() noexcept;
  bool increment_unless_zero() noexcept;
  std::uint32_t observed() const noexcept;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
