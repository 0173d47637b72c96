// The unit of work that executors and timers carry.
//
// Why this exists: completions are posted from driver callbacks, where nothing may allocate and nothing may
// fail. An item is a base class of whatever waits, so posting links memory that exists already.
//
// Ownership   Whoever posts gives the item up until exactly one of `run` and `drop` is called on it.
// Threading   `run` is called on a thread of the executor; `drop` wherever the executor is stopped.
// Failure     Neither may throw.
#pragma once

#include <holdfast/platform/abi.hpp>

namespace holdfast::inline HOLDFAST_ABI {

class work_item {
 public:
  work_item() noexcept = default;
  work_item(const work_item&) = delete;
  work_item& operator=(const work_item&) = delete;

  /// Does the work. The item may destroy itself.
  virtual void run() noexcept = 0;
  /// The executor stopped before the item ran: release what it owns, run nothing foreign.
  virtual void drop() noexcept = 0;

  /// Link of the queue that holds the item; belongs to that queue.
  work_item* next = nullptr;

 protected:
  ~work_item() = default;
};

/// First-in, first-out chain of items. Not synchronized.
class work_queue {
 public:
  bool empty() const noexcept { return head_ == nullptr; }
  void push(work_item& item) noexcept {
    item.next = nullptr;
    if (tail_ != nullptr)
      tail_->next = &item;
    else
      head_ = &item;
    tail_ = &item;
  }
  /// The oldest item, or null.
  work_item* pop() noexcept {
    work_item* const item = head_;
    if (item != nullptr) {
      head_ = item->next;
      if (head_ == nullptr) tail_ = nullptr;
      item->next = nullptr;
    }
    return item;
  }

 private:
  work_item* head_ = nullptr;
  work_item* tail_ = nullptr;
};

}  // namespace holdfast::inline HOLDFAST_ABI
