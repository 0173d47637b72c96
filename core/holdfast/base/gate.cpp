#include <holdfast/platform/abi.hpp>

#include <holdfast/base/gate.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/platform/stop_process.hpp>
#include <holdfast/telemetry/emit.hpp>

namespace holdfast::inline HOLDFAST_ABI {

gate::gate(std::uint64_t id, event_log& log) noexcept : id_(id), log_(log), mutex_(lock_ranks::base_gate) {}

gate::~gate() {
  if (in_flight() != 0) platform::stop_process("a gate was destroyed with tickets out");
}

gate::ticket gate::enter() noexcept {
  const std::uint64_t before = word_.fetch_add(one_entry, std::memory_order_seq_cst);
  if ((before & closed_bit) == 0) return ticket(*this);
  leave();
  return ticket();
}

void gate::leave() noexcept {
  // Only on a closed gate is it anybody's business who was the last.
  if (word_.fetch_sub(one_entry, std::memory_order_seq_cst) == (one_entry | closed_bit)) settle();
}

void gate::settle() noexcept {
  told_waiters told;
  {
    scoped_lock lock(mutex_);
    tell_drained(told);
  }
  told.tell();
}

void gate::tell_drained(told_waiters& told) noexcept {
  if (drained_) return;
  // Closed with nobody inside stays so: a later entry is refused before it becomes a ticket.
  drained_ = true;
  emit::gate_drained(log_, id_);
  while (waiter* const one = waiting_.pop_front()) told.add(*one);
  // With the lock held: whoever wakes may destroy the gate.
  emptied_.notify_all();
}

void gate::close() noexcept {
  told_waiters told;
  {
    scoped_lock lock(mutex_);
    const std::uint64_t before = word_.fetch_or(closed_bit, std::memory_order_seq_cst);
    if ((before & closed_bit) != 0) return;
    emit::gate_closed(log_, id_, before / one_entry);
    if (before / one_entry == 0) tell_drained(told);
  }
  told.tell();
}

bool gate::closed() const noexcept { return (word_.load(std::memory_order_seq_cst) & closed_bit) != 0; }

std::uint64_t gate::in_flight() const noexcept { return word_.load(std::memory_order_seq_cst) / one_entry; }

bool gate::drain_blocking(platform::time_point deadline) noexcept {
  scoped_lock lock(mutex_);
  while (!drained_)
    if (!emptied_.wait_until(mutex_, deadline)) break;
  return drained_;
}

// The test and the subscription are one section, and so are the last leave's report and its look at who waits.
waiter::attached gate::drain_awaiter::attach() noexcept {
  scoped_lock lock(gate_.mutex_);
  if (gate_.drained_) return attached::ready;
  gate_.waiting_.push_back(*this);
  return attached::linked;
}

bool gate::drain_awaiter::detach() noexcept {
  scoped_lock lock(gate_.mutex_);
  if (!linked()) return false;
  gate_.waiting_.erase(*this);
  return true;
}

}  // namespace holdfast::inline HOLDFAST_ABI
