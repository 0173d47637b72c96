// How a pool gives back what nobody uses: by age, when asked, and when the budget is short.
//
// Why this exists: registered memory is scarce for the whole machine, and an arena that is empty now may be wanted in a
// moment. So a sweep comes by twice in the time that an arena may idle, and at once before the budget refuses anybody.
// A sweep never waits: its victims are on the retiring list before it lets go of the lock, their unmaps are submitted,
// and the answers find them there (spec/pinned-memory 7.7, 7.8).
//
// Ownership   The pool's. While its timer is armed it keeps the pool.
// Units       Bytes, nanoseconds.
// Threading   Any thread, with no lock held.
// Failure     None. If the executor is stopped no sweep comes by itself any more; the shutdown finds everything.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/intrusive_list.hpp>
#include <holdfast/base/intrusive_ptr.hpp>
#include <holdfast/base/task.hpp>
#include <holdfast/base/thread_annotations.hpp>
#include <holdfast/base/waiter.hpp>
#include <holdfast/pinned/arena.hpp>
#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/condition_variable.hpp>
#include <holdfast/platform/executor.hpp>
#include <holdfast/platform/mutex.hpp>

#include <coroutine>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::pinned {

class pool_core;

/// What a sweep took out of service. Whether the registrations are gone is not known yet.
struct reclaim_report {
  std::uint32_t arenas = 0;
  std::uint64_t bytes = 0;
};

class reclaimer final : private platform::timer_item {
 public:
  explicit reclaimer(pool_core& pool) noexcept;

  /// Something is worth a sweep: it comes within a period.
  void watch() noexcept;
  /// Sweeps now, on this thread.
  reclaim_report sweep(reclaim_mode mode) noexcept;
  /// For an allocation that the budget refused: sweeps under pressure, and waits until the ledger has room for `bytes`,
  /// or nothing is being given back any more, or `deadline`. The answer names the sweep in events. Errors:
  /// cancelled, out_of_memory.
  static task<result<std::uint64_t>> relieve(task_context context, intrusive_ptr<pool_core> pool, std::uint64_t bytes,
                                             platform::time_point deadline);
  /// Nobody waits for relief any more: the pool refuses new work.
  void interrupt() noexcept;
  /// No sweep comes by itself any more, and none is under way: the device may go after this. Waits for a sweep that runs,
  /// which itself waits for nothing. Idempotent; not from a sweep.
  void stop() noexcept;

  // Of the arenas, for each unmap.
  void unmap_submitted() noexcept;
  void unmap_answered() noexcept;

 private:
  /// Waits for the next answer to an unmap.
  class answer_awaiter final : public waiter {
   public:
    answer_awaiter(reclaimer& of, std::uint64_t seen, platform::time_point deadline) noexcept
        : waiter(deadline), of_(of), seen_(seen) {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> task) noexcept {
      return suspend(task.promise());
    }
    wait_end await_resume() const noexcept { return end(); }

   private:
    attached attach() noexcept override;
    bool detach() noexcept override;
    reclaimer& of_;
    const std::uint64_t seen_;
  };

  // timer
  void run() noexcept override;
  void drop() noexcept override;
  void arm() noexcept;
  bool look_after_retired() noexcept;
  void dispose_all(arena* first) noexcept;
  void tell_all(told_waiters& told) noexcept HOLDFAST_REQUIRES(mutex_);
  /// Answers so far, and whether any is owed.
  struct progress {
    std::uint64_t answers;
    bool owed;
  };
  progress look() noexcept;

  // Sweeps of the timer do not overlap: the state leaves `sweeping` when one is over.
  enum class state : std::uint8_t { idle, armed, sweeping, wanted, stopped };

  pool_core& pool_;
  platform::mutex mutex_;
  state state_ HOLDFAST_GUARDED_BY(mutex_) = state::idle;
  bool running_ HOLDFAST_GUARDED_BY(mutex_) = false;  // a sweep of the timer, whatever the state says
  platform::condition_variable over_;
  bool interrupted_ HOLDFAST_GUARDED_BY(mutex_) = false;
  std::uint64_t owed_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint64_t answers_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint64_t reliefs_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  intrusive_list<waiter, wait_source> waiting_ HOLDFAST_GUARDED_BY(mutex_);
};

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
