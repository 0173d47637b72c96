#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/executor.hpp>

#include <holdfast/platform/stop_process.hpp>
#include <holdfast/platform/thread.hpp>

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::platform {

namespace {

constexpr auto not_armed = static_cast<std::size_t>(-1);

// Binary heap of armed timers. Each timer knows its place, so that cancelling one finds it without a search.
class timer_heap {
 public:
  bool empty() const noexcept { return timers_.empty(); }
  const timer_item& earliest() const noexcept { return *timers_.front(); }

  // False: no memory, nothing changed.
  bool insert(timer_item& timer) noexcept {
    try {
      timers_.push_back(&timer);
    } catch (const std::bad_alloc&) {
      return false;
    }
    timer.heap_order = next_order_++;
    timer.heap_index = timers_.size() - 1;
    rise(timer.heap_index);
    return true;
  }

  bool holds(const timer_item& timer) const noexcept {
    return timer.heap_index < timers_.size() && timers_[timer.heap_index] == &timer;
  }

  void remove(timer_item& timer) noexcept {
    const std::size_t hole = std::exchange(timer.heap_index, not_armed);
    timer_item& last = *timers_.back();
    timers_.pop_back();
    if (&last == &timer) return;
    put(hole, last);
    // The last one comes from another branch: it may belong above the hole as well as below.
    sink(hole);
    rise(hole);
  }

  timer_item& take_earliest() noexcept {
    timer_item& timer = *timers_.front();
    remove(timer);
    return timer;
  }

 private:
  // Timers of one deadline run in the order in which they were armed.
  static bool before(const timer_item& a, const timer_item& b) noexcept {
    return a.deadline != b.deadline ? a.deadline < b.deadline : a.heap_order < b.heap_order;
  }
  void put(std::size_t index, timer_item& timer) noexcept {
    timers_[index] = &timer;
    timer.heap_index = index;
  }
  void rise(std::size_t index) noexcept {
    timer_item& timer = *timers_[index];
    while (index > 0) {
      const std::size_t parent = (index - 1) / 2;
      if (!before(timer, *timers_[parent])) break;
      put(index, *timers_[parent]);
      index = parent;
    }
    put(index, timer);
  }
  void sink(std::size_t index) noexcept {
    timer_item& timer = *timers_[index];
    for (;;) {
      std::size_t child = 2 * index + 1;
      if (child >= timers_.size()) break;
      if (child + 1 < timers_.size() && before(*timers_[child + 1], *timers_[child])) ++child;
      if (!before(*timers_[child], timer)) break;
      put(index, *timers_[child]);
      index = child;
    }
    put(index, timer);
  }

  std::vector<timer_item*> timers_;
  std::uint64_t next_order_ = 0;
};

}  // namespace

// Idle threads sleep in two places. One of them, the timekeeper, sleeps until the earliest deadline; the others
// sleep without one. So a deadline wakes one thread, not all, and a timer that is armed and cancelled before it is
// due wakes at most one.
struct executor_pool::state {
  std::mutex mutex;
  std::condition_variable idle_changed;
  std::condition_variable time_changed;
  work_queue queue;
  timer_heap timers;
  unsigned idle = 0;
  // One of the idle was notified and has not come yet. He passes on what he finds beside his own, so that a second post
  // right behind a first does not wake a second thread to stand in line with him.
  bool waking = false;
  bool timekeeper = false;
  bool stopping = false;
  std::vector<thread> threads;
  std::vector<std::uint64_t> thread_numbers;

  // Serializes stop(): a second caller returns when the work of the first is done, too.
  std::mutex stop_mutex;
  bool stopped = false;
  const pid_t owner = ::getpid();

  // Somebody has to look at the queue or the heap again. Any sleeper will do; the timekeeper only if nobody else
  // sleeps, since another then has to take its place.
  void wake_one() noexcept {
    if (idle > 0) {
      if (!std::exchange(waking, true)) idle_changed.notify_one();
    } else if (timekeeper) {
      time_changed.notify_one();
    }
  }

  void collect_due() noexcept {
    if (timers.empty()) return;
    const time_point now = clock().now();
    while (!timers.empty() && timers.earliest().deadline <= now) queue.push(timers.take_earliest());
  }

  void work() {
    std::unique_lock lock(mutex);
    thread_numbers.push_back(this_thread_number());
    for (;;) {
      if (stopping) return;
      collect_due();
      if (work_item* const item = queue.pop()) {
        // Passed on rather than counted: whoever was notified for an item may have found it gone.
        if (!queue.empty() || (!timers.empty() && !timekeeper)) wake_one();
        lock.unlock();
        item->run();
        lock.lock();
      } else if (!timers.empty() && !timekeeper) {
        timekeeper = true;
        if (const time_point deadline = timers.earliest().deadline; deadline == never)
          time_changed.wait(lock);
        else
          time_changed.wait_until(lock, std::chrono::steady_clock::time_point(deadline.time_since_epoch()));
        timekeeper = false;
      } else {
        ++idle;
        idle_changed.wait(lock);
        --idle;
        waking = false;
      }
    }
  }

  bool post(work_item& item) noexcept {
    const std::scoped_lock lock(mutex);
    if (stopping) return false;
    queue.push(item);
    wake_one();
    return true;
  }

  bool arm(timer_item& timer, time_point deadline) noexcept {
    const std::scoped_lock lock(mutex);
    if (stopping) return false;
#if HOLDFAST_DEV_CHECKS
    if (timers.holds(timer)) stop_process("a timer was armed that is armed already");
#endif
    timer.deadline = deadline;
    if (!timers.insert(timer)) return false;
    // Later than what the timekeeper waits for: it will look by itself.
    if (timer.heap_index != 0) return true;
    if (timekeeper)
      time_changed.notify_one();
    else
      wake_one();
    return true;
  }

  bool cancel(timer_item& timer) noexcept {
    const std::scoped_lock lock(mutex);
    // Not there: due and in the queue, running, or dropped. Each of these calls the item exactly once.
    if (!timers.holds(timer)) return false;
    timers.remove(timer);
    return true;
  }

  void stop() {
    const std::scoped_lock once(stop_mutex);
    if (std::exchange(stopped, true)) return;
    {
      const std::scoped_lock lock(mutex);
      stopping = true;
      // It would wait for itself. Typical cause: the last owner of a host went away inside a handler.
      if (std::ranges::find(thread_numbers, this_thread_number()) != thread_numbers.end())
        stop_process("an executor was stopped by one of its own threads");
      idle_changed.notify_all();
      time_changed.notify_all();
    }
    for (auto& worker : threads) worker.join();
    // After the threads: what is dropped here belongs to nobody who still runs. Taken one by one, since a drop may
    // cancel or destroy what it owns, and everything queued is called even if its owner tries to cancel it.
    work_queue rest;
    {
      const std::scoped_lock lock(mutex);
      rest = std::exchange(queue, {});
      while (!timers.empty()) rest.push(timers.take_earliest());
    }
    while (work_item* const item = rest.pop()) item->drop();
  }
};

executor_pool::executor_pool(unsigned threads) : state_(std::make_unique<state>()) {
  state_->threads.reserve(threads);
  state_->thread_numbers.reserve(threads);
  for (unsigned i = 0; i < threads; ++i) {
    auto started = thread::start("executor-" + std::to_string(i), [pool = state_.get()] { pool->work(); });
    if (!started) {
      state_->stop();
      throw std::system_error(started.error(), std::generic_category(), "executor_pool: cannot start a thread");
    }
    state_->threads.push_back(std::move(*started));
  }
}

executor_pool::~executor_pool() {
  stop();
  // Asio keeps services of its own in the context; they may post, and must find a pool that answers.
  shutdown();
  destroy();
  // In a forked child the threads do not exist, and a lock may be held by one of them for ever.
  if (state_->owner != ::getpid()) static_cast<void>(state_.release());
}

void executor_pool::stop() noexcept {
  if (state_->owner != ::getpid()) return;
  state_->stop();
}

bool executor::post(work_item& item) const noexcept { return pool_->state_->post(item); }
bool executor::arm(timer_item& item, time_point deadline) const noexcept { return pool_->state_->arm(item, deadline); }
bool executor::cancel(timer_item& item) const noexcept { return pool_->state_->cancel(item); }

boost::asio::execution_context& executor::query(boost::asio::execution::context_t) const noexcept { return *pool_; }

}  // namespace holdfast::inline HOLDFAST_ABI::platform
