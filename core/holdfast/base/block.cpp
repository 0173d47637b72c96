#include <holdfast/platform/abi.hpp>

#include <holdfast/base/block.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>

namespace holdfast::inline HOLDFAST_ABI::detail {

block_signal::block_signal() noexcept : mutex_(lock_ranks::base_block) {}

void block_signal::wait() noexcept {
  scoped_lock lock(mutex_);
  while (!woken_) changed_.wait(mutex_);
}

void block_signal::wake() noexcept {
  scoped_lock lock(mutex_);
  woken_ = true;
  // With the lock held: the woken thread destroys the signal.
  changed_.notify_one();
}

}  // namespace holdfast::inline HOLDFAST_ABI::detail
