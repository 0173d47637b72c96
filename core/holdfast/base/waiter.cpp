#include <holdfast/platform/abi.hpp>

#include <holdfast/base/waiter.hpp>

namespace holdfast::inline HOLDFAST_ABI {

bool waiter::decide(decision what) noexcept {
  decision expected = decision::none;
  return decision_.compare_exchange_strong(expected, what, std::memory_order_acq_rel, std::memory_order_relaxed);
}

bool waiter::try_signal() noexcept { return decide(decision::signaled); }
void waiter::conclude() noexcept { conclude_as(source); }
void waiter::leave() noexcept { leave(1); }

void waiter::run() noexcept { decide(decision::timed_out) ? conclude_as(timer) : leave(1); }
void waiter::drop() noexcept { decide(decision::dropped) ? conclude_as(timer) : leave(1); }
void waiter::cancel_asked() noexcept { decide(decision::cancelled) ? conclude_as(canceller) : leave(1); }

// The winner of the decision counts as a party until here, so the waiter stays alive while the others are detached.
void waiter::conclude_as(party winner) noexcept { leave(1 + detach((source | canceller | timer) & ~winner)); }

unsigned waiter::detach(unsigned parties) noexcept {
  unsigned detached = 0;
  if ((parties & source) != 0 && detach()) ++detached;
  cancellation* const asked = task_->context().asked();
  if ((parties & canceller) != 0 && asked != nullptr && asked->unsubscribe(*this)) ++detached;
  if ((parties & timer) != 0 && deadline_ != platform::never && task_->context().executor().cancel(*this)) ++detached;
  return detached;
}

void waiter::leave(unsigned parties) noexcept {
  if (parties_.fetch_sub(parties, std::memory_order_acq_rel) != parties) return;
  if (decision_.load(std::memory_order_relaxed) == decision::dropped)
    task_->drop();
  else
    task_->resume_later();
}

bool waiter::suspend(task_promise_base& task) noexcept {
  task_ = &task;
  const bool before = task.begin_suspension();
  const attached to_source = attach();
  if (to_source == attached::ready) {
    task.undo_suspension(before);
    ready_ = true;
    return false;
  }
  task.observe_suspension();

  unsigned leaving = 1;  // this thread, and every party that was not attached or could be detached
  if (to_source == attached::no_source) ++leaving;
  cancellation* const asked = task.context().asked();
  if (asked == nullptr) {
    ++leaving;
  } else if (!asked->subscribe(*this)) {
    ++leaving;
    decide(decision::cancelled);
  }
  bool arm = deadline_ != platform::never;
  if (arm && deadline_ <= task.context().clock().now()) {
    decide(decision::timed_out);
    arm = false;
  }
  if (arm && !task.context().executor().arm(*this, deadline_)) {
    decide(decision::dropped);
    arm = false;
  }
  if (!arm) ++leaving;
  // A winner that came while parties were still being attached could not detach those.
  if (decision_.load(std::memory_order_acquire) != decision::none) leaving += detach(source | canceller | timer);
  if (parties_.fetch_sub(leaving, std::memory_order_acq_rel) != leaving) return true;
  if (decision_.load(std::memory_order_relaxed) != decision::dropped) return false;
  task.drop();
  return true;
}

wait_end waiter::end() const noexcept {
  if (ready_) return wait_end::signaled;
  switch (decision_.load(std::memory_order_relaxed)) {
    case decision::signaled: return wait_end::signaled;
    case decision::timed_out: return wait_end::timed_out;
    default: return wait_end::cancelled;
  }
}

void told_waiters::chain::push(waiter& one) noexcept {
  one.next_told_ = nullptr;
  if (last != nullptr)
    last->next_told_ = &one;
  else
    first = &one;
  last = &one;
}

bool told_waiters::add(waiter& one) noexcept {
  const bool signaled = one.try_signal();
  (signaled ? signaled_ : late_).push(one);
  return signaled;
}

void told_waiters::tell() noexcept {
  while (waiter* const one = signaled_.first) {
    signaled_.first = one->next_told_;
    one->conclude();
  }
  while (waiter* const one = late_.first) {
    late_.first = one->next_told_;
    one->leave();
  }
}

}  // namespace holdfast::inline HOLDFAST_ABI
