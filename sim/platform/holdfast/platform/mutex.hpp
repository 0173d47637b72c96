// Simulated mutexes: scheduling points, rank check, quiet points. Clauses M1 to M4.
//
// A fiber whose next operation is to lock a held mutex is not runnable, so a schedule never contains a step that
// only finds the lock taken. Outside a world, and in kernel scope, nothing schedules: taking a held lock there is
// an error of the check or test that does it.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/lock_class.hpp>
#include <holdfast/base/thread_annotations.hpp>

#include <cstdint>

namespace holdfast::sim {
class fiber;
}

namespace holdfast::inline HOLDFAST_ABI::platform {

class condition_variable;

class HOLDFAST_CAPABILITY("mutex") mutex {
 public:
  explicit mutex(const lock_class& kind) noexcept : kind_(kind) {}
  ~mutex();
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
  void lock() HOLDFAST_ACQUIRE();
  bool try_lock() HOLDFAST_TRY_ACQUIRE(true);
  void unlock() HOLDFAST_RELEASE();

 private:
  friend class condition_variable;
  std::uint32_t object();
  bool free() const noexcept { return owner_ == nullptr && !held_outside_; }
  void append_pending(sim::fiber& f) noexcept;
  void wait_for_turn(sim::fiber& self);
  void release();

  const lock_class& kind_;
  std::uint32_t object_ = 0;
  sim::fiber* owner_ = nullptr;
  bool held_outside_ = false;      // taken where nothing schedules
  sim::fiber* pending_ = nullptr;  // fibers whose next operation is to lock this
};

class HOLDFAST_CAPABILITY("shared_mutex") shared_mutex {
 public:
  explicit shared_mutex(const lock_class& kind) noexcept : kind_(kind) {}
  ~shared_mutex();
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;
  void lock() HOLDFAST_ACQUIRE();
  void unlock() HOLDFAST_RELEASE();
  void lock_shared() HOLDFAST_ACQUIRE_SHARED();
  void unlock_shared() HOLDFAST_RELEASE_SHARED();

 private:
  std::uint32_t object();
  void take(bool shared);
  void refresh() noexcept;

  const lock_class& kind_;
  std::uint32_t object_ = 0;
  sim::fiber* owner_ = nullptr;
  bool held_outside_ = false;
  std::uint32_t readers_ = 0;
  sim::fiber* pending_ = nullptr;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
