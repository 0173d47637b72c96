// Archetype of S1.
#pragma once

#include <holdfast/platform/abi.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

template <class T>
class thread_slot {
 public:
  thread_slot() noexcept;
  ~thread_slot();
  thread_slot(const thread_slot&) = delete;
  thread_slot& operator=(const thread_slot&) = delete;
  T* get() const noexcept;
  bool set(T* value) noexcept;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
