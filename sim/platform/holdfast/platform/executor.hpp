// Simulated executor: worker fibers of one host, a queue, and timers that are world events. Clauses X1 to X6.
//
// Ownership   `executor_pool` is owned by the platform host. `executor` is a copyable handle that must not outlive it.
// Threading   Every member is callable from any fiber of the host; timers fire from the world's event queue.
// Failure     `post` on a stopped pool answers false and leaves the item with the caller. Posting while a ranked
//             lock is held is a violation.
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

namespace holdfast::sim {
class host;
}

namespace holdfast::inline HOLDFAST_ABI::platform {

class executor_pool;

/// A work item with a deadline. Armed at most once at a time.
class timer_item : public work_item {
 public:
  time_point deadline{};
  /// Bookkeeping of the pool: the world's event, 0 = not armed.
  std::uint64_t event = 0;
  timer_item* next_armed = nullptr;
  timer_item* previous_armed = nullptr;

 protected:
  ~timer_item() = default;
};

class executor {
 public:
  explicit executor(executor_pool& pool) noexcept : pool_(&pool) {}

  bool post(work_item& item) const noexcept;
  bool arm(timer_item& item, time_point deadline) const noexcept;
  bool cancel(timer_item& item) const noexcept;

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

class executor_pool final : public boost::asio::execution_context {
 public:
  executor_pool(sim::host& where, unsigned threads);
  ~executor_pool();
  executor get() noexcept { return executor(*this); }
  void stop() noexcept;

 private:
  friend class executor;
  struct state;
  state* state_;  // in the host's heap, so that it goes with the host
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
