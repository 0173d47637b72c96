// Real per-thread storage: one pointer per thread and slot. Clause S1.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <pthread.h>

namespace holdfast::inline HOLDFAST_ABI::platform {

/// What a thread left in its slot is not destroyed when the thread ends: the owner of the slot finds it
/// through its own list.
template <class T>
class thread_slot {
 public:
  thread_slot() noexcept : valid_(pthread_key_create(&key_, nullptr) == 0) {}
  ~thread_slot() {
    if (valid_) pthread_key_delete(key_);
  }
  thread_slot(const thread_slot&) = delete;
  thread_slot& operator=(const thread_slot&) = delete;
  /// Null if this thread stored nothing, or the system ran out of slots.
  T* get() const noexcept { return valid_ ? static_cast<T*>(pthread_getspecific(key_)) : nullptr; }
  /// False: not stored.
  bool set(T* value) noexcept { return valid_ && pthread_setspecific(key_, value) == 0; }

 private:
  pthread_key_t key_{};
  bool valid_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
