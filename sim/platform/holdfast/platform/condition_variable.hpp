// Simulated condition variable. Clauses V1 to V3. Waiters are woken in the order in which they began to wait.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/mutex.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

class condition_variable {
 public:
  condition_variable() noexcept = default;
  ~condition_variable();
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;
  void wait(mutex& held) HOLDFAST_REQUIRES(held) { wait_until(held, never); }
  /// False if the deadline passed.
  bool wait_until(mutex& held, time_point deadline) HOLDFAST_REQUIRES(held);
  void notify_one() noexcept;
  void notify_all() noexcept;

 private:
  struct waiter;
  std::uint32_t object();
  void hand_over(waiter& w) noexcept;
  std::uint32_t object_ = 0;
  waiter* waiters_ = nullptr;  // oldest first; nodes live on the stacks of those who wait
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
