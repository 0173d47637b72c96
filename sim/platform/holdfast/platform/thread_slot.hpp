// Simulated per-thread storage: one pointer per fiber and slot. Clause S1.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::platform {

namespace detail {
void* fiber_slot_get(std::uint32_t slot) noexcept;
bool fiber_slot_set(std::uint32_t& slot, void* value) noexcept;
}  // namespace detail

template <class T>
class thread_slot {
 public:
  thread_slot() noexcept = default;
  thread_slot(const thread_slot&) = delete;
  thread_slot& operator=(const thread_slot&) = delete;
  T* get() const noexcept { return static_cast<T*>(detail::fiber_slot_get(object_)); }
  bool set(T* value) noexcept { return detail::fiber_slot_set(object_, value); }

 private:
  // Numbered at the first store. Not by address: a slot that is made where another was must be empty.
  std::uint32_t object_ = 0;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
