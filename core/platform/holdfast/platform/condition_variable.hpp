// Real condition variable over std::condition_variable. Clauses V1 to V3.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/mutex.hpp>

#include <condition_variable>

namespace holdfast::inline HOLDFAST_ABI::platform {

class condition_variable {
 public:
  /// Spurious returns are possible on both sides: callers loop on their condition.
  void wait(mutex& held) HOLDFAST_REQUIRES(held) {
    std::unique_lock lock(held.native_, std::adopt_lock);
    native_.wait(lock);
    lock.release();
  }
  /// False if the deadline passed. A deadline of `never` waits without one.
  bool wait_until(mutex& held, time_point deadline) HOLDFAST_REQUIRES(held) {
    if (deadline == never) return wait(held), true;
    std::unique_lock lock(held.native_, std::adopt_lock);
    const auto status = native_.wait_until(
        lock, std::chrono::steady_clock::time_point(
                  std::chrono::duration_cast<std::chrono::steady_clock::duration>(deadline.time_since_epoch())));
    lock.release();
    return status == std::cv_status::no_timeout;
  }
  void notify_one() noexcept { native_.notify_one(); }
  void notify_all() noexcept { native_.notify_all(); }

 private:
  std::condition_variable native_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
