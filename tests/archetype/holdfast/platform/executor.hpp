// Archetype of X1 to X6: no pool, no running inline, no way to look into a timer.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/work_item.hpp>
#include <holdfast/platform/clock.hpp>

#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>

#include <type_traits>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::platform {

class timer_item : public work_item {
 public:
  timer_item() noexcept;

 protected:
  ~timer_item();
};

class executor {
 public:
  executor() = delete;
  executor(const executor&) noexcept;
  executor& operator=(const executor&) noexcept;
  ~executor();

  bool post(work_item& item) const noexcept;
  bool arm(timer_item& item, time_point deadline) const noexcept;
  bool cancel(timer_item& item) const noexcept;

  // A body, because a template over a type without linkage may not be used undefined.
  template <class F>
  void execute(F&& function) const {
    std::decay_t<F> local(std::forward<F>(function));
    std::move(local)();
  }
  boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept;
  static constexpr boost::asio::execution::blocking_t query(boost::asio::execution::blocking_t) noexcept {
    return boost::asio::execution::blocking.never;
  }
  executor require(boost::asio::execution::blocking_t::never_t) const noexcept;
  friend bool operator==(const executor&, const executor&) noexcept;
};

bool operator==(const executor&, const executor&) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::platform
