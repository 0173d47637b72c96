// What a suspended task waits with: a source, a deadline and a cancellation, of which exactly one wins.
//
// Why this exists: everything that can be awaited in core has the same three ends, and the same trap: who lost the
// race may still be on its way into the waiter when the winner resumes the task. So a waiter counts its parties
// (source, timer, canceller, and the suspending thread); the winner detaches the others, each of which says exactly
// whether it is still coming; the last one out resumes the task through the executor.
//
// Ownership   A waiter is part of the frame of the task that it suspends. Sources link it while they may signal it.
// Units       Absolute deadlines on the environment's clock; `platform::never` arms no timer.
// Threading   A source takes the waiter out of its list and calls `try_signal` under its own lock, and then, with no
//             lock held, `conclude` if that was true and `leave` if not (`told_waiters` does both). After that it must
//             not touch the waiter.
// Failure     If the executor is stopped, the task is dropped (base/task.hpp).
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/cancellation.hpp>
#include <holdfast/base/intrusive_list.hpp>
#include <holdfast/base/task.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/executor.hpp>

#include <coroutine>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI {

/// How a wait ended.
enum class wait_end : std::uint8_t { signaled, timed_out, cancelled };

struct wait_source {};

class waiter : public list_hook<wait_source>, private platform::timer_item, private cancellation::subscriber {
 public:
  /// The source has what the task waits for. False: another party was first.
  bool try_signal() noexcept;
  /// The source's last call after `try_signal` was true: detaches the other parties and leaves.
  void conclude() noexcept;
  /// The source's last call after `try_signal` was false.
  void leave() noexcept;
  /// Whether a list of its source holds it.
  bool linked() const noexcept { return list_hook<wait_source>::linked(); }

 protected:
  explicit waiter(platform::time_point deadline) noexcept : deadline_(deadline) {}
  ~waiter() = default;

  enum class attached : std::uint8_t {
    linked,     // the source may signal the waiter from now on
    ready,      // what it waits for is there already; nothing was linked
    no_source,  // it waits for its deadline only
  };
  virtual attached attach() noexcept = 0;
  /// Exact: true means that it was linked and the source will not signal it; false that the source took it out.
  virtual bool detach() noexcept = 0;

  /// True: suspended; the waiter must not be touched any more. False: `end()` is known already.
  bool suspend(task_promise_base& task) noexcept;
  wait_end end() const noexcept;

 private:
  enum class decision : std::uint8_t { none, signaled, timed_out, cancelled, dropped };

  void run() noexcept final;           // the timer
  void drop() noexcept final;          // the timer's executor was stopped
  void cancel_asked() noexcept final;  // the canceller
  enum party : unsigned { source = 1, canceller = 2, timer = 4 };
  bool decide(decision what) noexcept;
  void conclude_as(party winner) noexcept;
  unsigned detach(unsigned parties) noexcept;
  void leave(unsigned parties) noexcept;

  friend class told_waiters;
  waiter* next_told_ = nullptr;

  platform::time_point deadline_;
  task_promise_base* task_ = nullptr;
  bool ready_ = false;  // nothing was attached
  platform::atomic<decision> decision_{decision::none};
  // The suspending thread and the three parties, which are counted before they are attached.
  platform::atomic<std::uint32_t> parties_{4};
};

/// Waiters that a source took out under its lock, to be told after it unlocked.
class told_waiters {
 public:
  told_waiters() noexcept = default;
  told_waiters(const told_waiters&) = delete;
  told_waiters& operator=(const told_waiters&) = delete;

  /// `one` is linked nowhere. True: it was signaled. False: it timed out or was cancelled before.
  bool add(waiter& one) noexcept;
  /// The last call, with no lock held.
  void tell() noexcept;

 private:
  struct chain {
    waiter* first = nullptr;
    waiter* last = nullptr;
    void push(waiter& one) noexcept;
  };
  chain signaled_;
  chain late_;
};

/// `co_await delay_until(deadline)` answers timed_out, or cancelled if that came first.
class delay_awaiter final : public waiter {
 public:
  explicit delay_awaiter(platform::time_point deadline) noexcept : waiter(deadline) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> task) noexcept {
    return suspend(task.promise());
  }
  wait_end await_resume() const noexcept { return end(); }

 private:
  attached attach() noexcept override { return attached::no_source; }
  bool detach() noexcept override { return false; }
};
inline delay_awaiter delay_until(platform::time_point deadline) noexcept { return delay_awaiter(deadline); }

}  // namespace holdfast::inline HOLDFAST_ABI
