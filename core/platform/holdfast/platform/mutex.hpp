// Real mutexes: std::mutex and std::shared_mutex; the lock class costs nothing here. Clauses M1 to M4.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/lock_class.hpp>
#include <holdfast/base/thread_annotations.hpp>

#include <mutex>
#include <shared_mutex>

namespace holdfast::inline HOLDFAST_ABI::platform {

class condition_variable;

class HOLDFAST_CAPABILITY("mutex") mutex {
 public:
  explicit mutex(const lock_class&) noexcept {}
  void lock() HOLDFAST_ACQUIRE() { native_.lock(); }
  bool try_lock() HOLDFAST_TRY_ACQUIRE(true) { return native_.try_lock(); }
  void unlock() HOLDFAST_RELEASE() { native_.unlock(); }

 private:
  friend class condition_variable;
  std::mutex native_;
};

class HOLDFAST_CAPABILITY("shared_mutex") shared_mutex {
 public:
  explicit shared_mutex(const lock_class&) noexcept {}
  void lock() HOLDFAST_ACQUIRE() { native_.lock(); }
  void unlock() HOLDFAST_RELEASE() { native_.unlock(); }
  void lock_shared() HOLDFAST_ACQUIRE_SHARED() { native_.lock_shared(); }
  void unlock_shared() HOLDFAST_RELEASE_SHARED() { native_.unlock_shared(); }

 private:
  std::shared_mutex native_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
