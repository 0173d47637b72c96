// The wish to end one operation early.
//
// Why this exists: cancelling abandons a notification, never a transfer, so it is asked for and answered as a value
// where the operation suspends. Whoever asks may come from any thread, at any time, also long after the end.
//
// Ownership   Shared: the operation holds a share, and so does everybody who may still ask.
// Threading   Every member from any thread. Subscribers are called with no lock held.
// Failure     `make` answers null when host memory is out (site "base.cancellation").
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/intrusive_list.hpp>
#include <holdfast/base/intrusive_ptr.hpp>
#include <holdfast/base/thread_annotations.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/mutex.hpp>

namespace holdfast::inline HOLDFAST_ABI {

class cancellation final : public ref_counted<cancellation> {
 public:
  static intrusive_ptr<cancellation> make() noexcept;

  /// Asks. Idempotent; calls every subscriber once.
  void request() noexcept;
  bool requested() const noexcept { return requested_.load(std::memory_order_acquire); }

  class subscriber : public list_hook<cancellation> {
   public:
    /// Called at most once, on the asking thread. The subscriber is no longer linked then.
    virtual void cancel_asked() noexcept = 0;

   protected:
    ~subscriber() = default;
  };
  /// False: asked already; `one` is not linked and will not be called.
  bool subscribe(subscriber& one) noexcept;
  /// Exact: true means that `one` was linked and will not be called; false that it was called, or is being called.
  bool unsubscribe(subscriber& one) noexcept;

 private:
  friend class ref_counted<cancellation>;
  cancellation() noexcept;
  ~cancellation() = default;

  platform::atomic<bool> requested_{false};
  platform::mutex mutex_;
  intrusive_list<subscriber, cancellation> subscribers_ HOLDFAST_GUARDED_BY(mutex_);
};

}  // namespace holdfast::inline HOLDFAST_ABI
