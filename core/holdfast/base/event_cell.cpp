#include <holdfast/platform/abi.hpp>

#include <holdfast/base/event_cell.hpp>

#include <holdfast/platform/stop_process.hpp>

namespace holdfast::inline HOLDFAST_ABI {

event_cell_base::event_cell_base() noexcept : mutex_(lock_ranks::base_wait) {}

event_cell_base::~event_cell_base() {
  if (waiting_ != nullptr) platform::stop_process("an event cell was destroyed under its waiter");
}

bool event_cell_base::may_complete(told_waiters& told) noexcept {
  if (state_ == state::full) platform::stop_process("an event cell was completed twice");
  if (state_ == state::closed) return false;
  waiter* const waiting = std::exchange(waiting_, nullptr);
  if (waiting != nullptr && !told.add(*waiting)) {
    state_ = state::closed;
    return false;
  }
  state_ = state::full;
  return true;
}

bool event_cell_base::attach(waiter& one) noexcept {
  scoped_lock lock(mutex_);
  if (state_ == state::full) return false;
  if (state_ == state::closed || waiting_ != nullptr) platform::stop_process("an event cell was waited for twice");
  waiting_ = &one;
  return true;
}

bool event_cell_base::detach(waiter& one) noexcept {
  scoped_lock lock(mutex_);
  if (waiting_ != &one) return false;
  waiting_ = nullptr;
  state_ = state::closed;
  return true;
}

bool event_cell_base::abandon() noexcept {
  scoped_lock lock(mutex_);
  if (state_ == state::full) return false;
  state_ = state::closed;
  return true;
}

bool event_cell_base::completed() const noexcept {
  scoped_lock lock(mutex_);
  return state_ == state::full;
}

}  // namespace holdfast::inline HOLDFAST_ABI
