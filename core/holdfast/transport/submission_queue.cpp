#include <holdfast/platform/abi.hpp>

#include <holdfast/transport/submission_queue.hpp>

#include <atomic>

namespace holdfast::inline HOLDFAST_ABI::transport {

bool submission_queue::push(command& item) noexcept {
  command* seen = head_.load(std::memory_order_relaxed);
  for (;;) {
    if (seen == closed()) return false;
    item.next_command = seen;
    if (head_.compare_exchange_weak(seen, &item, std::memory_order_seq_cst, std::memory_order_relaxed)) return true;
  }
}

bool submission_queue::pending() const noexcept {
  command* const seen = head_.load(std::memory_order_seq_cst);
  return seen != nullptr && seen != closed();
}

command* submission_queue::take_all() noexcept {
  command* const seen = head_.load(std::memory_order_acquire);
  if (seen == nullptr || seen == closed()) return nullptr;
  return oldest_first(head_.exchange(nullptr, std::memory_order_acq_rel));
}

command* submission_queue::close() noexcept {
  command* const newest = head_.exchange(closed(), std::memory_order_acq_rel);
  return newest == closed() ? nullptr : oldest_first(newest);
}

command* submission_queue::oldest_first(command* newest) noexcept {
  command* reversed = nullptr;
  while (newest != nullptr) {
    command* const next = newest->next_command;
    newest->next_command = reversed;
    reversed = newest;
    newest = next;
  }
  return reversed;
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
