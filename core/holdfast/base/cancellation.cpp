#include <holdfast/platform/abi.hpp>

#include <holdfast/base/cancellation.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/platform/heap_fault.hpp>

#include <new>

namespace holdfast::inline HOLDFAST_ABI {

cancellation::cancellation() noexcept : mutex_(lock_ranks::base_wait) {}

intrusive_ptr<cancellation> cancellation::make() noexcept {
  if (platform::heap_fault("base.cancellation")) return {};
  return adopt_new(new (std::nothrow) cancellation);
}

void cancellation::request() noexcept {
  // A subscriber may end the operation, and with it the last other share.
  const intrusive_ptr<cancellation> keep(this);
  for (;;) {
    subscriber* asked = nullptr;
    {
      scoped_lock lock(mutex_);
      requested_.store(true, std::memory_order_release);
      asked = subscribers_.pop_front();
    }
    if (asked == nullptr) return;
    asked->cancel_asked();
  }
}

bool cancellation::subscribe(subscriber& one) noexcept {
  scoped_lock lock(mutex_);
  if (requested_.load(std::memory_order_relaxed)) return false;
  subscribers_.push_back(one);
  return true;
}

bool cancellation::unsubscribe(subscriber& one) noexcept {
  scoped_lock lock(mutex_);
  if (!one.linked()) return false;
  subscribers_.erase(one);
  return true;
}

}  // namespace holdfast::inline HOLDFAST_ABI
