// Archetype of M1 to M4: no native handle, no ownership queries, no shared try_lock.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/lock_class.hpp>
#include <holdfast/base/thread_annotations.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

class HOLDFAST_CAPABILITY("mutex") mutex {
 public:
  explicit mutex(const lock_class&) noexcept;
  ~mutex();
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
  void lock() HOLDFAST_ACQUIRE();
  bool try_lock() HOLDFAST_TRY_ACQUIRE(true);
  void unlock() HOLDFAST_RELEASE();
};

class HOLDFAST_CAPABILITY("shared_mutex") shared_mutex {
 public:
  explicit shared_mutex(const lock_class&) noexcept;
  ~shared_mutex();
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;
  void lock() HOLDFAST_ACQUIRE();
  void unlock() HOLDFAST_RELEASE();
  void lock_shared() HOLDFAST_ACQUIRE_SHARED();
  void unlock_shared() HOLDFAST_RELEASE_SHARED();
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
