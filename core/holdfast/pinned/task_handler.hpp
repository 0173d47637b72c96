// From the end of a task to the handler of whoever started it.
//
// Why this exists: a public operation is a task inside and a completion handler outside. Both ends are prepared before
// the task begins, so that telling needs no memory.
//
// Ownership   Destroys itself once the task ended or was dropped.
// Threading   As task_completion.
// Failure     No memory: `start_with_handler` tells the handler out_of_memory.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/completion.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/task.hpp>
#include <holdfast/platform/heap_fault.hpp>

#include <memory>
#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::pinned {

template <class R>
class task_handler final : public task_completion<R> {
 public:
  /// Null: host memory is out (site "pinned.task_handler"); `told` is untouched.
  static task_handler* make(completion<R>& told) noexcept {
    return platform::heap_fault("pinned.task_handler") ? nullptr : new (std::nothrow) task_handler(told);
  }
  void completed(R value) noexcept override {
    const std::unique_ptr<task_handler> self(this);
    told_.complete(std::move(value));
  }
  void dropped() noexcept override { delete this; }

  cancellation* asked() noexcept { return &told_.asked(); }
  /// For a task that never ran: tells `value` instead.
  void tell(R value) noexcept { completed(std::move(value)); }

 private:
  explicit task_handler(completion<R>& told) noexcept : told_(std::move(told)) {}
  completion<R> told_;
};

/// Starts `make(context)` on the calling thread; `handler` is told how it ends, on its executor.
template <class R, class Handler, class Make>
void start_with_handler(const task_environment& environment, const char* operation, Handler handler, Make make) {
  auto told = completion<R>::start(std::move(handler), environment.executor(), operation);
  if (!told) return;
  task_handler<R>* const waiting = task_handler<R>::make(*told);
  if (waiting == nullptr) return told->complete(fail(error_code::out_of_memory, operation));
  if (!start_here(make(task_context(environment, operation, waiting->asked())), *waiting))
    waiting->tell(fail(error_code::out_of_memory, operation));
}

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
