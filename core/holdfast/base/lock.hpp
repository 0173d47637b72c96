// Scoped locks over the platform's mutexes, annotated for clang's thread-safety analysis.
//
// Why this exists: std::lock_guard carries no annotation in libstdc++, and a scope that unlocks early has to
// say so in its type.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/thread_annotations.hpp>
#include <holdfast/platform/mutex.hpp>

namespace holdfast::inline HOLDFAST_ABI {

/// Holds a mutex for a scope; `unlock` ends it early, `lock` takes it again.
class HOLDFAST_SCOPED_CAPABILITY scoped_lock {
 public:
  explicit scoped_lock(platform::mutex& mutex) HOLDFAST_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~scoped_lock() HOLDFAST_RELEASE() {
    if (held_) mutex_.unlock();
  }
  scoped_lock(const scoped_lock&) = delete;
  scoped_lock& operator=(const scoped_lock&) = delete;
  void unlock() HOLDFAST_RELEASE() {
    held_ = false;
    mutex_.unlock();
  }
  void lock() HOLDFAST_ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }
  platform::mutex& mutex() noexcept { return mutex_; }

 private:
  platform::mutex& mutex_;
  bool held_ = true;
};

/// Exclusive use of a shared mutex for a scope.
class HOLDFAST_SCOPED_CAPABILITY write_lock {
 public:
  explicit write_lock(platform::shared_mutex& mutex) HOLDFAST_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~write_lock() HOLDFAST_RELEASE() {
    if (held_) mutex_.unlock();
  }
  write_lock(const write_lock&) = delete;
  write_lock& operator=(const write_lock&) = delete;
  void unlock() HOLDFAST_RELEASE() {
    held_ = false;
    mutex_.unlock();
  }

 private:
  platform::shared_mutex& mutex_;
  bool held_ = true;
};

/// Shared use of a shared mutex for a scope.
class HOLDFAST_SCOPED_CAPABILITY read_lock {
 public:
  explicit read_lock(platform::shared_mutex& mutex) HOLDFAST_ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ~read_lock() HOLDFAST_RELEASE_GENERIC() {
    if (held_) mutex_.unlock_shared();
  }
  read_lock(const read_lock&) = delete;
  read_lock& operator=(const read_lock&) = delete;
  void unlock() HOLDFAST_RELEASE_GENERIC() {
    held_ = false;
    mutex_.unlock_shared();
  }

 private:
  platform::shared_mutex& mutex_;
  bool held_ = true;
};

}  // namespace holdfast::inline HOLDFAST_ABI
