// One holder at a time, first come first served, without a lock held.
//
// Why this exists: a growth claim or a maintenance turn spans device calls and suspensions, where no mutex may be
// held, and it may end on another thread than it began on (spec/pinned-memory 8.3).
//
// Ownership   The turn outlives its holders and its waiters; destroying it earlier stops the process.
// Threading   Every member from any thread. A release hands the turn over to the oldest waiter directly.
// Failure     Waiting ends with a value when it is cancelled or times out: the waiter is out of the queue then, and
//             never became holder.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/intrusive_list.hpp>
#include <holdfast/base/thread_annotations.hpp>
#include <holdfast/base/waiter.hpp>
#include <holdfast/platform/mutex.hpp>

#include <cstddef>
#include <expected>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

class turn {
 public:
  turn() noexcept;
  ~turn();
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;

  /// Having the turn. Releases when it is destroyed, on any thread.
  class [[nodiscard]] holder {
   public:
    holder() noexcept = default;
    holder(holder&& other) noexcept : turn_(std::exchange(other.turn_, nullptr)) {}
    holder& operator=(holder&& other) noexcept {
      if (this != &other) {
        release();
        turn_ = std::exchange(other.turn_, nullptr);
      }
      return *this;
    }
    ~holder() { release(); }
    explicit operator bool() const noexcept { return turn_ != nullptr; }
    void release() noexcept {
      if (turn* const held = std::exchange(turn_, nullptr)) held->pass_on();
    }

   private:
    friend class turn;
    explicit holder(turn& held) noexcept : turn_(&held) {}
    turn* turn_ = nullptr;
  };

  /// Empty if somebody has the turn, or waits for it.
  holder try_take() noexcept;

  class take_awaiter final : public waiter {
   public:
    take_awaiter(turn& taken, platform::time_point deadline) noexcept : waiter(deadline), turn_(taken) {}
    ~take_awaiter();
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> task) noexcept {
      return suspend(task.promise());
    }
    std::expected<holder, wait_end> await_resume() noexcept;

   private:
    friend class turn;
    attached attach() noexcept override;
    bool detach() noexcept override;
    turn& turn_;
    bool handed_over_ = false;  // the turn is ours, and no holder says so yet
  };
  /// The turn, or timed_out or cancelled.
  take_awaiter take(platform::time_point deadline = platform::never) noexcept { return take_awaiter(*this, deadline); }

  /// For reports.
  bool taken() const noexcept;
  std::size_t waiting() const noexcept;

 private:
  void pass_on() noexcept;

  mutable platform::mutex mutex_;
  bool taken_ HOLDFAST_GUARDED_BY(mutex_) = false;
  intrusive_list<waiter, wait_source> queue_ HOLDFAST_GUARDED_BY(mutex_);
};

}  // namespace holdfast::inline HOLDFAST_ABI
