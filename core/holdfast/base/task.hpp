// The coroutines of the core: lazy, on an explicit executor, without exceptions.
//
// Why this exists: multi-step operations (grow a pool, connect, shut down) have to suspend while a device works, and
// Asio's coroutines throw out of a later co_await after a cancellation. Here a cancellation is asked for
// (base/cancellation.hpp) and delivered as a value by what the task waits for (base/waiter.hpp).
//
// Rules       The first parameter of every coroutine (after the object of a member function) is a `task_context` by
//             value: the frame comes from its pool. GCC 12 forbids more; tests/check_coroutines.py lists it.
//             A task<result<U>> is awaited by another task, or started as a root with `start`. A task<void> can only
//             be a root (`spawn`).
// Resumption  A child that ends without having suspended does not resume its parent through a chain: the parent just
//             goes on, so a loop of awaits needs no stack. Every other resumption is an intrusive work item on the
//             executor: no allocation, nothing runs on the stack of whoever completes.
// Ownership   A task owns its frame until it is started. A root owns itself: it outlives the caller and its frame is
//             destroyed before its completion is told, so parameters and locals (holds, tickets, shares) are gone.
// The end     When the executor refuses or drops a resumption (it was stopped), the root's frame is destroyed where it
//             is suspended, with all its children: destructors run, on the refusing thread; no code of the body runs;
//             `task_completion::dropped` is called instead of `completed`.
// Threading   A task runs on one thread at a time, perhaps on a different one after each suspension.
// Failure     No memory for a frame (site "base.frame"): the task ends with error_code::out_of_memory when it is
//             awaited; `start` and `spawn` answer false. An exception that leaves a body stops the process.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/cancellation.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/frame_pool.hpp>
#include <holdfast/base/intrusive_ptr.hpp>
#include <holdfast/base/work_item.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/executor.hpp>
#include <holdfast/platform/stop_process.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

class event_log;

/// What all tasks of a runtime share. Outlives them.
class task_environment {
 public:
  task_environment(platform::executor executor, const platform::clock& clock, event_log& log,
                   frame_pool& frames) noexcept
      : executor_(executor), clock_(clock), log_(log), frames_(frames) {}
  platform::executor executor() const noexcept { return executor_; }
  const platform::clock& clock() const noexcept { return clock_; }
  event_log& log() const noexcept { return log_; }
  frame_pool& frames() const noexcept { return frames_; }

 private:
  platform::executor executor_;
  const platform::clock& clock_;
  event_log& log_;
  frame_pool& frames_;
};

/// First parameter of every coroutine: where it runs, what it is called, and who may cancel it. A small value.
class task_context {
 public:
  /// `operation` is a string literal ("pinned.alloc"). `asked` may be null: nobody can cancel. The root of the task
  /// keeps a share of it.
  task_context(const task_environment& environment, const char* operation, cancellation* asked = nullptr) noexcept
      : environment_(&environment), operation_(operation), asked_(asked) {}

  const task_environment& environment() const noexcept { return *environment_; }
  platform::executor executor() const noexcept { return environment_->executor(); }
  const platform::clock& clock() const noexcept { return environment_->clock(); }
  event_log& log() const noexcept { return environment_->log(); }
  frame_pool& frames() const noexcept { return environment_->frames(); }
  const char* operation() const noexcept { return operation_; }
  /// Null if nobody can cancel.
  cancellation* asked() const noexcept { return asked_; }
  bool cancel_requested() const noexcept { return asked_ != nullptr && asked_->requested(); }
  /// The same surroundings for a part that must not be cancelled (a rollback).
  task_context shielded() const noexcept { return task_context(*environment_, operation_, nullptr); }

 private:
  const task_environment* environment_;
  const char* operation_;
  cancellation* asked_;
};

/// Told how a root ended, exactly once, on a thread of the executor (or inline in `start_here`).
template <class T>
class task_completion {
 public:
  /// The frame is gone already.
  virtual void completed(T value) noexcept = 0;
  /// The executor was stopped before the end; the frame was destroyed.
  virtual void dropped() noexcept = 0;

 protected:
  ~task_completion() = default;
};

/// Part of every promise that does not depend on the result.
class task_promise_base : public work_item {
 public:
  void run() noexcept final;
  void drop() noexcept final;

  static void* operator new(std::size_t bytes, const task_context& context, const auto&...) noexcept {
    return context.frames().allocate(bytes);
  }
  template <class Self>
    requires(!std::is_same_v<Self, task_context>)
  static void* operator new(std::size_t bytes, const Self&, const task_context& context, const auto&...) noexcept {
    return context.frames().allocate(bytes);
  }
  static void operator delete(void* frame, std::size_t) noexcept { frame_pool::release(frame); }

  std::suspend_always initial_suspend() const noexcept { return {}; }
  void unhandled_exception() const noexcept { platform::stop_process("an exception left a task"); }

  const task_context& context() const noexcept { return context_; }
  /// A waiter is about to suspend this task, and may be signaled from now on. The answer undoes it.
  bool begin_suspension() noexcept { return std::exchange(suspended_once_, true); }
  /// The waiter had what it waits for after all.
  void undo_suspension(bool before) noexcept { suspended_once_ = before; }
  /// Tells the platform of this suspension, by its number within the root.
  void observe_suspension() noexcept;
  /// Resumes the suspended task through the executor, or drops the root if the executor refuses.
  void resume_later() noexcept;

 protected:
  task_promise_base(const task_context& context) noexcept : context_(context) {}
  ~task_promise_base() = default;

  /// Runs `child` until it ends or suspends. True: this task has to suspend, and must not be touched any more.
  bool await_child(task_promise_base& child) noexcept;
  /// At the final suspension of a child.
  void finish_child() noexcept;
  bool is_root() const noexcept { return parent_ == nullptr; }
  /// Makes this a root. Keeps the cancellation alive.
  void become_root() noexcept;
  /// Lets the handle be resumed and destroyed without its type.
  void set_handle(std::coroutine_handle<> self) noexcept { self_ = self; }
  /// The frame of this root, suspended for good, is to be destroyed; tells the completion.
  virtual void destroy_dropped() noexcept = 0;

  template <class>
  friend class task;

 private:
  enum class meeting : std::uint8_t { nobody, starter, finished, dropped };

  task_context context_;
  std::coroutine_handle<> self_;
  task_promise_base* parent_ = nullptr;  // who awaits this; null for a root and before it is started
  task_promise_base* root_ = nullptr;
  intrusive_ptr<cancellation> keep_asked_;  // roots only
  unsigned suspensions_ = 0;                // roots only
  bool suspended_once_ = false;
  bool ended_at_once_ = false;
  // Whoever comes second of "the starter has left" and "the child has ended (or was dropped)" goes on with the parent.
  platform::atomic<meeting> meeting_{meeting::nobody};
};

template <class T>
struct is_result : std::false_type {};
template <class U>
struct is_result<result<U>> : std::true_type {};

template <class T>
class task_promise;

/// A coroutine that has not begun, or that its awaiter owns. T is void or a result<U>.
template <class T>
class [[nodiscard]] task {
  static_assert(std::is_void_v<T> || is_result<T>::value, "a task ends with a result, which can say out_of_memory");

 public:
  using promise_type = task_promise<T>;

  task() noexcept = default;
  task(task&& other) noexcept : promise_(std::exchange(other.promise_, nullptr)) {}
  task& operator=(task&&) = delete;
  ~task() {
    if (promise_ != nullptr) promise_->handle().destroy();
  }

  /// False: there was no memory for its frame.
  bool valid() const noexcept { return promise_ != nullptr; }

  bool await_ready() const noexcept { return promise_ == nullptr; }
  template <class Parent>
    requires is_result<T>::value
  bool await_suspend(std::coroutine_handle<Parent> parent) noexcept {
    task_promise_base& waiting = parent.promise();
    return waiting.await_child(*promise_);
  }
  T await_resume() noexcept
    requires is_result<T>::value
  {
    if (promise_ == nullptr) return fail(error_code::out_of_memory, "base.frame");
    return promise_->take();
  }

  /// Begins the body on the executor as a root that owns itself. False: no frame, or the executor was stopped;
  /// nothing ran, `completion` will not be told.
  friend bool start(task&& root, task_completion<T>& completion) noexcept
    requires is_result<T>::value
  {
    return root.begin(&completion, false);
  }
  /// As `start`, but the part before the first suspension runs at once on the calling thread, and so may
  /// `completion.completed`.
  friend bool start_here(task&& root, task_completion<T>& completion) noexcept
    requires is_result<T>::value
  {
    return root.begin(&completion, true);
  }
  /// Begins a detached root on the executor. False: no frame, or the executor was stopped; nothing ran.
  friend bool spawn(task&& root) noexcept
    requires std::is_void_v<T>
  {
    return root.begin(nullptr, false);
  }
  /// As `spawn`, with the part before the first suspension on the calling thread.
  friend bool spawn_here(task&& root) noexcept
    requires std::is_void_v<T>
  {
    return root.begin(nullptr, true);
  }

 private:
  friend promise_type;
  using completion_pointer = std::conditional_t<std::is_void_v<T>, std::nullptr_t,
                                                task_completion<std::conditional_t<std::is_void_v<T>, int, T>>*>;
  explicit task(promise_type* promise) noexcept : promise_(promise) {}
  bool begin(completion_pointer completion, bool here) noexcept {
    if (promise_ == nullptr) return false;
    promise_->set_completion(completion);
    promise_->become_root();
    promise_type* const promise = std::exchange(promise_, nullptr);
    if (here) {
      promise->run();
      return true;
    }
    if (promise->context().executor().post(*promise)) return true;
    promise->handle().destroy();
    return false;
  }

  promise_type* promise_ = nullptr;
};

struct task_final_awaiter {
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> self) const noexcept {
    self.promise().finish();
  }
  void await_resume() const noexcept {}
};

template <class T>
class task_promise final : public task_promise_base {
 public:
  task_promise(const task_context& context, const auto&...) noexcept : task_promise_base(context) {}
  template <class Self>
    requires(!std::is_same_v<Self, task_context>)
  task_promise(const Self&, const task_context& context, const auto&...) noexcept : task_promise_base(context) {}

  task<T> get_return_object() noexcept {
    set_handle(handle());
    return task<T>(this);
  }
  static task<T> get_return_object_on_allocation_failure() noexcept { return task<T>(); }
  std::coroutine_handle<task_promise> handle() noexcept {
    return std::coroutine_handle<task_promise>::from_promise(*this);
  }
  task_final_awaiter final_suspend() const noexcept { return {}; }
  template <class U>
    requires std::is_convertible_v<U&&, T>
  void return_value(U&& value) noexcept {
    value_.emplace(std::forward<U>(value));
  }

 private:
  friend task<T>;
  friend task_final_awaiter;
  T take() noexcept { return std::move(*value_); }
  void set_completion(task_completion<T>* completion) noexcept { completion_ = completion; }
  void finish() noexcept {
    if (!is_root()) return finish_child();
    task_completion<T>* const completion = completion_;
    T value = take();
    handle().destroy();
    completion->completed(std::move(value));
  }
  void destroy_dropped() noexcept final {
    task_completion<T>* const completion = completion_;
    handle().destroy();
    completion->dropped();
  }

  std::optional<T> value_;
  task_completion<T>* completion_ = nullptr;
};

template <>
class task_promise<void> final : public task_promise_base {
 public:
  task_promise(const task_context& context, const auto&...) noexcept : task_promise_base(context) {}
  template <class Self>
    requires(!std::is_same_v<Self, task_context>)
  task_promise(const Self&, const task_context& context, const auto&...) noexcept : task_promise_base(context) {}

  task<void> get_return_object() noexcept {
    set_handle(handle());
    return task<void>(this);
  }
  static task<void> get_return_object_on_allocation_failure() noexcept { return task<void>(); }
  std::coroutine_handle<task_promise> handle() noexcept {
    return std::coroutine_handle<task_promise>::from_promise(*this);
  }
  task_final_awaiter final_suspend() const noexcept { return {}; }
  void return_void() const noexcept {}

 private:
  friend task<void>;
  friend task_final_awaiter;
  void set_completion(std::nullptr_t) noexcept {}
  void finish() noexcept { handle().destroy(); }
  void destroy_dropped() noexcept final { handle().destroy(); }
};

}  // namespace holdfast::inline HOLDFAST_ABI
