#include <holdfast/platform/abi.hpp>

#include <holdfast/base/task.hpp>

#include <holdfast/platform/observe.hpp>

namespace holdfast::inline HOLDFAST_ABI {

void task_promise_base::run() noexcept {
  const std::coroutine_handle<> self = self_;
  self.resume();
}

void task_promise_base::drop() noexcept {
  // Every level whose starter has left is suspended for good. A starter that is still on some stack below finds
  // `dropped` when it leaves, and goes on from there.
  task_promise_base* at = this;
  while (at->parent_ != nullptr) {
    task_promise_base* const parent = at->parent_;
    if (at->meeting_.exchange(meeting::dropped, std::memory_order_acq_rel) != meeting::starter) return;
    at = parent;
  }
  at->destroy_dropped();
}

void task_promise_base::observe_suspension() noexcept {
  platform::observe_suspension(context_.operation(), root_->suspensions_++, context_.asked());
}

void task_promise_base::resume_later() noexcept {
  if (!context_.executor().post(*this)) drop();
}

bool task_promise_base::await_child(task_promise_base& child) noexcept {
  child.parent_ = this;
  child.root_ = root_;
  child.self_.resume();
  // Written only by a child that never suspended, hence by this thread.
  if (child.ended_at_once_) return false;
  suspended_once_ = true;
  switch (child.meeting_.exchange(meeting::starter, std::memory_order_acq_rel)) {
    case meeting::finished: return false;
    case meeting::dropped: drop(); return true;
    default: return true;
  }
}

void task_promise_base::finish_child() noexcept {
  if (!suspended_once_) {
    ended_at_once_ = true;
    return;
  }
  // After the exchange the parent may go on, and destroy this frame.
  task_promise_base* const parent = parent_;
  if (meeting_.exchange(meeting::finished, std::memory_order_acq_rel) == meeting::starter) parent->resume_later();
}

void task_promise_base::become_root() noexcept {
  root_ = this;
  if (context_.asked() != nullptr) keep_asked_ = intrusive_ptr<cancellation>(context_.asked());
}

}  // namespace holdfast::inline HOLDFAST_ABI
