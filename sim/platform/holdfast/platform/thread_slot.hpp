// Simulated per-thread storage: one pointer per fiber and slot. Clause S1.
#pragma once

#include <holdfast/platform/abi.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

namespace detail {
void* fiber_slot_get(const void* slot) noexcept;
bool fiber_slot_set(const void* slot, void* value) noexcept;
}  // namespace detail

template <class T>
class thread_slot {
 public:
  thread_slot() noexcept = default;
  thread_slot(const thread_slot&) = delete;
  thread_slot& operator=(const thread_slot&) = delete;
  T* get() const noexcept { return static_cast<T*>(detail::fiber_slot_get(this)); }
  bool set(T* value) noexcept { return detail::fiber_slot_set(this, value); }
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
