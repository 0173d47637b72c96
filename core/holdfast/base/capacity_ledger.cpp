#include <holdfast/platform/abi.hpp>

#include <holdfast/base/capacity_ledger.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/platform/stop_process.hpp>
#include <holdfast/telemetry/emit.hpp>

#include <algorithm>
#include <limits>

namespace holdfast::inline HOLDFAST_ABI {

// ---- Values -----------------------------------------------------------------------------------------------------

void grant::release() noexcept {
  capacity_ledger* const ledger = ledger_;
  const std::uint64_t bytes = detach();
  if (ledger != nullptr) ledger->release(bytes);
}

grant grant::split(std::uint64_t bytes) noexcept {
  if (ledger_ == nullptr || bytes > bytes_) return grant();
  bytes_ -= bytes;
  return grant(*ledger_, bytes);
}

bool reservation::raise_to(std::uint64_t bytes) noexcept {
  if (ledger_ == nullptr) return false;
  using raised = capacity_ledger::raised;
  const raised here = ledger_->raise(bytes_, bytes);
  if (here == raised::unchanged) return false;
  const raised above = ledger_->parent_ != nullptr ? ledger_->parent_->raise(bytes_, bytes) : raised::within;
  bytes_ = bytes;
  return here == raised::within && above == raised::within;
}

grant reservation::commit() noexcept {
  if (ledger_ == nullptr) return grant();
  capacity_ledger& ledger = *std::exchange(ledger_, nullptr);
  const std::uint64_t bytes = std::exchange(bytes_, 0);
  ledger.commit(bytes);
  if (ledger.parent_ != nullptr) ledger.parent_->commit(bytes);
  return grant(ledger, bytes);
}

void reservation::drop() noexcept {
  if (ledger_ == nullptr) return;
  capacity_ledger& ledger = *std::exchange(ledger_, nullptr);
  const std::uint64_t bytes = std::exchange(bytes_, 0);
  ledger.give_back(bytes, capacity_ledger::source::reservation, refusals_seen_);
  if (ledger.parent_ != nullptr)
    ledger.parent_->give_back(bytes, capacity_ledger::source::reservation, parent_refusals_seen_);
}

// ---- The ledger -------------------------------------------------------------------------------------------------

capacity_ledger::capacity_ledger(std::uint64_t id, std::uint64_t ceiling_bytes, event_log& log, const lock_class& rank,
                                 capacity_ledger* parent) noexcept
    : id_(id), ceiling_bytes_(ceiling_bytes), log_(log), parent_(parent), mutex_(rank) {
  if (parent != nullptr && parent->parent_ != nullptr) platform::stop_process("the parent of a ledger has a parent");
  emit::ledger_opened(log_, id_, ceiling_bytes_);
}

// The list of waiters stops the process itself if one is left.
capacity_ledger::~capacity_ledger() = default;

result<reservation> capacity_ledger::reserve(std::uint64_t bytes) noexcept {
  const result<std::uint64_t> here = open(bytes);
  if (!here) return std::unexpected(here.error());
  if (parent_ == nullptr) return reservation(*this, bytes, *here, 0);
  const result<std::uint64_t> above = parent_->open(bytes);
  if (above) return reservation(*this, bytes, *here, *above);
  give_back(bytes, source::reservation, *here);
  return std::unexpected(above.error());
}

void capacity_ledger::release(std::uint64_t bytes) noexcept {
  give_back(bytes, source::grant, 0);
  if (parent_ != nullptr) parent_->give_back(bytes, source::grant, 0);
}

result<std::uint64_t> capacity_ledger::open(std::uint64_t bytes) noexcept {
  scoped_lock lock(mutex_);
  if (corrupt_) return fail(error_code::corrupt, "ledger.reserve", id_);
  if (bytes == 0) return fail(error_code::out_of_range, "ledger.reserve", id_);
  // A difference, not a sum: a request near 2^64 must not wrap below the ceiling. Raising may have gone above it.
  const std::uint64_t charged_now = charged();
  if (charged_now > ceiling_bytes_ || bytes > ceiling_bytes_ - charged_now) {
    ++refusals_;
    emit::ledger_refused(log_, id_, bytes, charged_now, ceiling_bytes_);
    return fail(error_code::budget_exceeded, "ledger.reserve", id_, bytes, charged_now, ceiling_bytes_);
  }
  reserved_ += bytes;
  charged_high_ = std::max(charged_high_, charged());
  emit::ledger_reserved(log_, id_, bytes, charged());
  return refusals_;
}

capacity_ledger::raised capacity_ledger::raise(std::uint64_t from, std::uint64_t to) noexcept {
  scoped_lock lock(mutex_);
  if (to < from) {
    emit::ledger_raise_refused(log_, id_, from, to);
    return raised::unchanged;
  }
  if (to == from) return charged() > ceiling_bytes_ ? raised::above : raised::within;
  if (to - from > std::numeric_limits<std::uint64_t>::max() - charged()) {
    corrupt_ = true;
    emit::ledger_corrupt(log_, id_, to - from, charged());
    return raised::unchanged;
  }
  reserved_ += to - from;
  charged_high_ = std::max(charged_high_, charged());
  const bool above = charged() > ceiling_bytes_;
  emit::ledger_raised(log_, id_, to - from, charged(), above);
  return above ? raised::above : raised::within;
}

void capacity_ledger::commit(std::uint64_t bytes) noexcept {
  scoped_lock lock(mutex_);
  const std::uint64_t moved = std::min(bytes, reserved_);
  reserved_ -= moved;
  granted_ += moved;
  emit::ledger_committed(log_, id_, bytes, charged());
}

void capacity_ledger::give_back(std::uint64_t bytes, source from, std::uint64_t refusals_seen) noexcept {
  told_waiters told;
  {
    scoped_lock lock(mutex_);
    std::uint64_t& recorded = from == source::grant ? granted_ : reserved_;
    const bool over = bytes > recorded;
    recorded -= std::min(bytes, recorded);
    if (over) {
      ++over_releases_;
      corrupt_ = true;
      emit::ledger_corrupt(log_, id_, bytes, charged());
    } else if (from == source::grant) {
      emit::ledger_released(log_, id_, bytes, charged());
    } else {
      emit::ledger_dropped(log_, id_, bytes, charged());
    }
    // Who waits learns of the corruption by trying again.
    if (over || from == source::grant || refusals_ != refusals_seen) move_epoch(told);
  }
  told.tell();
}

void capacity_ledger::move_epoch(told_waiters& told) noexcept {
  ++epoch_;
  while (waiter* const one = waiting_.pop_front()) told.add(*one);
  moved_.notify_all();
}

std::uint64_t capacity_ledger::epoch() const noexcept {
  scoped_lock lock(mutex_);
  return epoch_;
}

capacity_snapshot capacity_ledger::snapshot() const noexcept {
  scoped_lock lock(mutex_);
  return {ceiling_bytes_, charged(), reserved_, charged_high_, refusals_, over_releases_, epoch_, corrupt_};
}

bool capacity_ledger::wait_past_blocking(std::uint64_t seen, platform::time_point deadline) noexcept {
  scoped_lock lock(mutex_);
  while (epoch_ <= seen)
    if (!moved_.wait_until(mutex_, deadline)) break;
  return epoch_ > seen;
}

waiter::attached capacity_ledger::epoch_awaiter::attach() noexcept {
  scoped_lock lock(ledger_.mutex_);
  if (ledger_.epoch_ > seen_) return attached::ready;
  ledger_.waiting_.push_back(*this);
  return attached::linked;
}

bool capacity_ledger::epoch_awaiter::detach() noexcept {
  scoped_lock lock(ledger_.mutex_);
  if (!linked()) return false;
  ledger_.waiting_.erase(*this);
  return true;
}

}  // namespace holdfast::inline HOLDFAST_ABI
