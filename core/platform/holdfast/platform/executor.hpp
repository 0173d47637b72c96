// Real executor: a pool of threads with a queue and a timer heap. Clauses X1 to X6.
//
// Why not an Asio thread pool: its per-thread call stacks cannot survive a fiber switch, and both sides must
// have the same rules. It *models* an Asio executor, so that completion tokens work.
//
// Ownership   `executor_pool` owns threads and queue and is owned by the host. `executor` is a copyable
//             handle that must not outlive its pool.
// Threading   Every member is callable from any thread.
// Failure     `post` on a stopped pool answers false and leaves the item with the caller.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/work_item.hpp>
#include <holdfast/platform/clock.hpp>

#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>

#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::platform {

class executor_pool;

/// A work item with a deadline. Armed at most once at a time.
class timer_item : public work_item {
 public:
  time_point deadline{};
  /// Bookkeeping of the pool: position in its heap, or npos.
  std::size_t heap_index = static_cast<std::size_t>(-1);
  std::uint64_t heap_order = 0;

 protected:
  ~timer_item() = default;
};

class executor {
 public:
  explicit executor(executor_pool& pool) noexcept : pool_(&pool) {}

  /// Runs `item` later on a thread of the pool, never inline. False: stopped, the item is still the caller's.
  bool post(work_item& item) const noexcept;
  /// Runs `item` at or after `deadline`. Past deadlines run soon. False: stopped, still the caller's.
  bool arm(timer_item& item, time_point deadline) const noexcept;
  /// Exact: true means that the item was armed, will not run, and is the caller's again.
  bool cancel(timer_item& item) const noexcept;

  // The rest makes this an Asio executor (blocking.never, own execution context).
  template <class F>
  void execute(F&& function) const {
    struct item final : work_item {
      explicit item(F&& f) : body(std::forward<F>(f)) {}
      void run() noexcept override {
        std::unique_ptr<item> self(this);
        auto local = std::move(body);
        self.reset();
        std::move(local)();
      }
      void drop() noexcept override { delete this; }
      std::decay_t<F> body;
    };
    auto made = std::make_unique<item>(std::forward<F>(function));
    if (post(*made)) made.release();
  }
  boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept;
  static constexpr boost::asio::execution::blocking_t query(boost::asio::execution::blocking_t) noexcept {
    return boost::asio::execution::blocking.never;
  }
  executor require(boost::asio::execution::blocking_t::never_t) const noexcept { return *this; }
  friend bool operator==(const executor& a, const executor& b) noexcept { return a.pool_ == b.pool_; }

 private:
  executor_pool* pool_;
};

/// Owns the threads. Created running; `stop` ends it: items not run are dropped, threads joined.
class executor_pool final : public boost::asio::execution_context {
 public:
  /// `threads` ≥ 1. Throws std::system_error if a thread cannot be started (only hosts construct pools).
  explicit executor_pool(unsigned threads);
  ~executor_pool();
  executor get() noexcept { return executor(*this); }
  /// Idempotent. Must not be called from a thread of the pool.
  void stop() noexcept;

 private:
  friend class executor;
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
