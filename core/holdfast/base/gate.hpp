// A counted entry that can be closed, and drained to a deadline.
//
// Why this exists: shutdown has to refuse new work and then know that the old work is over. An entry counts first and
// looks for "closed" afterwards, in one read-modify-write, so that no operation slips past a drain (spec/pinned-memory
// 7.9); a drain subscribes under the lock under which the last one out reports, so that no wakeup is lost.
//
// Ownership   The gate outlives its tickets: destroying it with tickets out stops the process. Once a drain answered
//             true, nothing of the gate is used by whoever left last, so it may be destroyed.
// Threading   Every member from any thread. `enter` and leaving take no lock while the gate is open.
// Failure     `enter` answers an empty ticket once the gate is closed.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/intrusive_list.hpp>
#include <holdfast/base/thread_annotations.hpp>
#include <holdfast/base/waiter.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/condition_variable.hpp>
#include <holdfast/platform/mutex.hpp>

#include <cstdint>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

class event_log;

class gate {
 public:
  /// `id` names the gate in events.
  gate(std::uint64_t id, event_log& log) noexcept;
  ~gate();
  gate(const gate&) = delete;
  gate& operator=(const gate&) = delete;

  /// One entry. Leaves when it is destroyed, on any thread. Empty if the entry was refused.
  class [[nodiscard]] ticket {
   public:
    ticket() noexcept = default;
    ticket(ticket&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    ticket& operator=(ticket&& other) noexcept {
      if (this != &other) {
        leave();
        gate_ = std::exchange(other.gate_, nullptr);
      }
      return *this;
    }
    ~ticket() { leave(); }
    explicit operator bool() const noexcept { return gate_ != nullptr; }
    /// Leaves now; the ticket is empty afterwards.
    void leave() noexcept {
      if (gate* const left = std::exchange(gate_, nullptr)) left->leave();
    }

   private:
    friend class gate;
    explicit ticket(gate& entered) noexcept : gate_(&entered) {}
    gate* gate_ = nullptr;
  };

  /// Empty if the gate is closed.
  ticket enter() noexcept;
  /// No entry succeeds from here on. Idempotent.
  void close() noexcept;
  bool closed() const noexcept;
  /// Tickets that are out (and, on a closed gate, entries that are about to be refused), for reports.
  std::uint64_t in_flight() const noexcept;

  class drain_awaiter final : public waiter {
   public:
    drain_awaiter(gate& drained, platform::time_point deadline) noexcept : waiter(deadline), gate_(drained) {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> task) noexcept {
      return suspend(task.promise());
    }
    bool await_resume() const noexcept { return end() == wait_end::signaled; }

   private:
    attached attach() noexcept override;
    bool detach() noexcept override;
    gate& gate_;
  };
  /// Waits until the gate is closed and empty. Does not close it. True: drained. False: the deadline or a
  /// cancellation came first. Several may drain.
  drain_awaiter drain(platform::time_point deadline) noexcept { return drain_awaiter(*this, deadline); }
  /// The same for a platform thread, which it blocks.
  bool drain_blocking(platform::time_point deadline) noexcept;

 private:
  static constexpr std::uint64_t closed_bit = 1;
  static constexpr std::uint64_t one_entry = 2;
  void leave() noexcept;
  void settle() noexcept;
  void tell_drained(told_waiters& told) noexcept HOLDFAST_REQUIRES(mutex_);

  // Bit 0: closed. The rest: entries. One word, so that "count, then look" is one step.
  platform::atomic<std::uint64_t> word_{0};
  const std::uint64_t id_;
  event_log& log_;
  platform::mutex mutex_;
  bool drained_ HOLDFAST_GUARDED_BY(mutex_) = false;
  intrusive_list<waiter, wait_source> waiting_ HOLDFAST_GUARDED_BY(mutex_);
  platform::condition_variable emptied_;
};

}  // namespace holdfast::inline HOLDFAST_ABI
