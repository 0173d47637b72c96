#include <holdfast/platform/abi.hpp>

#include <holdfast/transport/requests.hpp>

namespace holdfast::inline HOLDFAST_ABI::transport {

bool call_book::add(pending_call& one) noexcept {
  scoped_lock lock(mutex_);
  if (told_) return false;
  one.next_pending_ = first_;
  if (first_ != nullptr) first_->previous_pending_ = &one;
  first_ = &one;
  return true;
}

void call_book::remove(pending_call& one) noexcept {
  scoped_lock lock(mutex_);
  (one.previous_pending_ != nullptr ? one.previous_pending_->next_pending_ : first_) = one.next_pending_;
  if (one.next_pending_ != nullptr) one.next_pending_->previous_pending_ = one.previous_pending_;
  one.previous_pending_ = one.next_pending_ = nullptr;
}

void call_book::tell_all(const error& why) noexcept {
  pending_call* waiting = nullptr;
  {
    scoped_lock lock(mutex_);
    told_ = true;
    for (pending_call* one = first_; one != nullptr; one = one->next_pending_)
      if (one->take_share()) {
        one->next_told = waiting;
        waiting = one;
      }
  }
  while (waiting != nullptr) {
    pending_call* const told = waiting;
    waiting = told->next_told;
    told->tell(why);
  }
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
