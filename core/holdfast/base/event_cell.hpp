// One value, from one producer on any thread to one task.
//
// Why this exists: a driver answers once, perhaps after the asker stopped waiting. Exactly one of value, timeout and
// cancellation is delivered, and a producer whose answer comes too late is told so and keeps it: late registrations
// and late buffers need an owner.
//
// Ownership   The cell lives in the record of the operation, which outlives both sides; not in the waiting frame.
//             A value that nobody took is destroyed with the cell.
// Threading   `complete` from any thread, once. `wait` and `abandon` by the one consumer.
// Failure     Completing twice stops the process: two answers to one question are one release too many.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/base/waiter.hpp>
#include <holdfast/platform/mutex.hpp>

#include <cstdint>
#include <expected>
#include <optional>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

/// The part of a cell that does not depend on its value.
class event_cell_base {
 public:
  event_cell_base(const event_cell_base&) = delete;
  event_cell_base& operator=(const event_cell_base&) = delete;

  /// The consumer will not wait (any more). True: a completion will be refused from now on; false: one came first,
  /// its value is here (`take`).
  bool abandon() noexcept;
  /// Whether a value came. True stays true.
  bool completed() const noexcept;

 protected:
  event_cell_base() noexcept;
  ~event_cell_base();

  // `open`: no value, nobody waits for good. `closed`: the consumer gave up.
  enum class state : std::uint8_t { open, full, closed };
  /// Whether a value may be stored now; the waiter, if there is one, goes to `told`.
  bool may_complete(told_waiters& told) noexcept HOLDFAST_REQUIRES(mutex_);
  bool attach(waiter& one) noexcept;
  bool detach(waiter& one) noexcept;

  mutable platform::mutex mutex_;
  state state_ HOLDFAST_GUARDED_BY(mutex_) = state::open;
  waiter* waiting_ HOLDFAST_GUARDED_BY(mutex_) = nullptr;
};

template <class T>
class event_cell : public event_cell_base {
 public:
  /// Delivers `value`, or keeps it for a later `wait`. False: the consumer gave up (timed out, cancelled, abandoned);
  /// `value` is untouched and still the producer's.
  [[nodiscard]] bool complete(T&& value) noexcept {
    told_waiters told;
    bool stored = false;
    {
      scoped_lock lock(mutex_);
      stored = may_complete(told);
      if (stored) value_.emplace(std::move(value));
    }
    told.tell();
    return stored;
  }

  class awaiter final : public waiter {
   public:
    awaiter(event_cell& cell, platform::time_point deadline) noexcept : waiter(deadline), cell_(cell) {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> task) noexcept {
      return suspend(task.promise());
    }
    std::expected<T, wait_end> await_resume() noexcept {
      if (end() != wait_end::signaled) return std::unexpected(end());
      return cell_.take();
    }

   private:
    attached attach() noexcept override {
      return cell_.event_cell_base::attach(*this) ? attached::linked : attached::ready;
    }
    bool detach() noexcept override { return cell_.event_cell_base::detach(*this); }
    event_cell& cell_;
  };
  /// The value, or timed_out or cancelled: then completions are refused from that moment on. At most once in the life
  /// of a cell.
  awaiter wait(platform::time_point deadline = platform::never) noexcept { return awaiter(*this, deadline); }

  /// The value; `completed()` is true. Only the consumer takes, once.
  T take() noexcept {
    T taken = std::move(*value_);
    value_.reset();
    return taken;
  }

 private:
  std::optional<T> value_;
};

}  // namespace holdfast::inline HOLDFAST_ABI
