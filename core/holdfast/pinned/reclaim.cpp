#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/reclaim.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/pinned/core.hpp>
#include <holdfast/telemetry/emit.hpp>

#include <chrono>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::pinned {

reclaimer::reclaimer(pool_core& pool) noexcept : pool_(pool), mutex_(lock_ranks::pinned_reclaim) {}

// ---- The timer ----------------------------------------------------------------------------------

void reclaimer::watch() noexcept {
  {
    scoped_lock lock(mutex_);
    if (state_ == state::sweeping) state_ = state::wanted;
    if (state_ != state::idle) return;
    state_ = state::armed;
    pool_.add_share();  // the timer's
  }
  arm();
}

void reclaimer::arm() noexcept {
  const std::chrono::nanoseconds period(reclaim_period_ns(pool_.options));
  if (!pool_.environment.executor().arm(*this, pool_.environment.clock().now() + period)) drop();
}

void reclaimer::run() noexcept {
  {
    scoped_lock lock(mutex_);
    if (state_ == state::armed) {
      state_ = state::sweeping;
      running_ = true;
    }
    if (state_ == state::stopped) {
      lock.unlock();
      return pool_.drop_share();
    }
  }
  const pool_core::idle_sweep swept = pool_.retire_idle(reclaim_mode::timed);
  dispose_all(swept.first);
  bool more = swept.waits;
  if (look_after_retired()) more = true;
  {
    scoped_lock lock(mutex_);
    if (state_ == state::wanted) more = true;
    if (state_ == state::stopped) more = false;
    if (state_ != state::stopped) state_ = more ? state::armed : state::idle;
    running_ = false;
    over_.notify_all();
  }
  // The share goes on with the timer.
  if (more)
    arm();
  else
    pool_.drop_share();
}

void reclaimer::drop() noexcept {
  {
    scoped_lock lock(mutex_);
    state_ = state::stopped;
  }
  pool_.drop_share();
}

void reclaimer::stop() noexcept {
  bool armed = false;
  {
    scoped_lock lock(mutex_);
    armed = state_ == state::armed;
    state_ = state::stopped;
    while (running_) over_.wait(mutex_);
  }
  // Not armed any more: it runs, finds the state, and gives the share back itself.
  if (armed && pool_.environment.executor().cancel(*this)) pool_.drop_share();
}

bool reclaimer::look_after_retired() noexcept {
  bool again = false;
  const platform::time_point now = pool_.environment.clock().now();
  for (arena* one = pool_.retiring.share_for_looking_after(); one != nullptr;) {
    arena* const next = one->next_looked_after;
    if (one->look_after(now, pool_.options.unmap_timeout_ns)) {
      again = true;
      pool_.dispose(*one);
    }
    one->drop_share();
    one = next;
  }
  return again;
}

// ---- Sweeping -----------------------------------------------------------------------------------

void reclaimer::dispose_all(arena* first) noexcept {
  while (arena* const one = first) {
    first = one->next_reclaimed;
    pool_.dispose(*one);
    one->drop_share();
  }
}

reclaim_report reclaimer::sweep(reclaim_mode mode) noexcept {
  const pool_core::idle_sweep swept = pool_.retire_idle(mode);
  dispose_all(swept.first);
  // An answer that is late, or a refusal, wants the timer.
  if (swept.waits || swept.victims != 0) watch();
  return {swept.victims, swept.bytes};
}

// ---- Pressure -----------------------------------------------------------------------------------

void reclaimer::unmap_submitted() noexcept {
  scoped_lock lock(mutex_);
  ++owed_;
}

void reclaimer::unmap_answered() noexcept {
  told_waiters told;
  {
    scoped_lock lock(mutex_);
    --owed_;
    ++answers_;
    tell_all(told);
  }
  told.tell();
}

void reclaimer::interrupt() noexcept {
  told_waiters told;
  {
    scoped_lock lock(mutex_);
    interrupted_ = true;
    tell_all(told);
  }
  told.tell();
}

void reclaimer::tell_all(told_waiters& told) noexcept {
  while (waiter* const one = waiting_.pop_front()) told.add(*one);
}

reclaimer::progress reclaimer::look() noexcept {
  scoped_lock lock(mutex_);
  return {answers_, owed_ != 0 && !interrupted_};
}

waiter::attached reclaimer::answer_awaiter::attach() noexcept {
  scoped_lock lock(of_.mutex_);
  // Answered, or nothing to wait for, since the books were looked at.
  if (of_.answers_ != seen_ || of_.owed_ == 0 || of_.interrupted_) return attached::ready;
  of_.waiting_.push_back(*this);
  return attached::linked;
}

bool reclaimer::answer_awaiter::detach() noexcept {
  scoped_lock lock(of_.mutex_);
  if (!linked()) return false;
  of_.waiting_.erase(*this);
  return true;
}

task<result<std::uint64_t>> reclaimer::relieve([[maybe_unused]] task_context context, intrusive_ptr<pool_core> pool,
                                               std::uint64_t bytes, platform::time_point deadline) {
  reclaimer& self = pool->reclaiming;
  std::uint64_t attempt = 0;
  {
    scoped_lock lock(self.mutex_);
    attempt = ++self.reliefs_;
  }
  self.sweep(reclaim_mode::pressure);
  bool room = false;
  for (;;) {
    const progress before = self.look();
    const capacity_snapshot books = pool->ledger.snapshot();
    room = books.ceiling_bytes >= books.charged_bytes && books.ceiling_bytes - books.charged_bytes >= bytes;
    if (room || !before.owed) break;
    answer_awaiter answer(self, before.answers, deadline);
    const wait_end how = co_await answer;
    if (how == wait_end::cancelled) co_return fail(error_code::cancelled, "pinned.alloc");
    if (how == wait_end::timed_out) break;
  }
  emit::pressure_relieved(pool->log, pool->id, attempt, room);
  co_return attempt;
}

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
