#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/get.hpp>

#include <holdfast/pinned/core.hpp>
#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/telemetry/emit.hpp>

#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::pinned {

namespace {
constexpr const char* get = "pinned.get";
}

std::unique_ptr<get_operation> get_operation::make(pool_core& pool, buffer& destination) noexcept {
  if (platform::heap_fault("pinned.get")) return nullptr;
  std::unique_ptr<get_operation> made(new (std::nothrow) get_operation(pool));
  if (!made) return nullptr;
  made->cell_ = adopt_new(new (std::nothrow) get_cell(made->pool_));
  if (!made->cell_) return nullptr;
  made->destination_ = std::move(destination);
  return made;
}

get_cell::get_cell(intrusive_ptr<pool_core> of) noexcept : pool(std::move(of)) {}

get_cell::~get_cell() = default;

// The operation is still with a library that does not return: its record, hold and buffer stay as they are, for ever.
void get_cell::fate_unknown() noexcept {
  if (told.exchange(true, std::memory_order_acq_rel)) return;
  result<get_answer> unknown = fail(error_code::indeterminate, get);
  static_cast<void>(ended.complete(std::move(unknown)));
}

get_operation::get_operation(pool_core& pool) noexcept : pool_(intrusive_ptr<pool_core>(&pool)) {}

get_operation::~get_operation() = default;

result<void> get_operation::arm(const peer_id& from, const remote_reference& range) noexcept {
  if (!pool_->declared.get_works) return fail(error_code::not_configured, get);
  ticket_ = pool_->transfers.enter();
  if (!ticket_) return fail(error_code::shutting_down, get);
  if (range.length == 0 || range.length > destination_.size() || range.address + range.length < range.address)
    return fail(error_code::out_of_range, get, 0, range.length, 1, destination_.size());
  // Equal addresses and keys of another life name other bytes.
  if (range.incarnation != from.incarnation)
    return fail(error_code::stale_key, get, from.worker_id, range.generation, range.incarnation);
  // Before the device hears of it, so that nobody sees the arena idle while the device writes.
  hold_ = transfer_hold::take(*destination_.span_);
  if (!hold_) return fail(error_code::shutting_down, get, destination_.generation());
  peer = from;
  source = range;
  destination = destination_.span_->data();
  bytes = range.length;
  destination_region = destination_.generation();
  return {};
}

void get_operation::accepted() noexcept {
  emit::buffer_lent(pool_->log, destination_.span_->id(), operation, source.incarnation);
}

bool get_operation::abandoned() const noexcept { return cell_->abandoned.load(std::memory_order_acquire); }

std::uint64_t get_operation::span_id() const noexcept { return destination_.span_->id(); }

buffer get_operation::disarm() noexcept {
  hold_.drop();
  ticket_.leave();
  return std::move(destination_);
}

void get_operation::orphaned() noexcept {
  destination_.span_->owner().quarantine(*destination_.span_, operation, quarantine_reason::peer_dead);
  tell(get_outcome::indeterminate, {});
  told_ = true;
}

void get_operation::ended(get_outcome outcome, const error& why) noexcept {
  span& written = *destination_.span_;
  // Before the hold: with the last hold of an arena a shutdown may come to its report.
  ticket_.leave();
  if (outcome == get_outcome::indeterminate) {
    // No completion, no fence: the granules stay taken until the registration is gone.
    hold_.drop_into_quarantine(operation, told_);
  } else {
    // Its own completion is the fence, whatever its status.
    if (told_) written.owner().discharge(written, evidence::completed(operation));
    hold_.drop();
  }
  if (!told_) tell(outcome, why);
  if (!pool_->environment.executor().post(*this)) delete this;
}

void get_operation::tell(get_outcome outcome, const error& why) noexcept {
  if (cell_->told.exchange(true, std::memory_order_acq_rel)) return;
  cell_->operation = operation;
  if (outcome == get_outcome::indeterminate) {
    result<get_answer> unknown = fail(error_code::indeterminate, get, peer.worker_id);
    if (cell_->ended.complete(std::move(unknown)))
      emit::waiter_told(pool_->log, operation, false, static_cast<std::uint64_t>(error_code::indeterminate), bytes);
    return;
  }
  result<void> status;
  if (outcome != get_outcome::ok) status = std::unexpected(why);
  result<get_answer> answer(std::in_place, status, std::move(destination_));
  if (cell_->ended.complete(std::move(answer)))
    emit::waiter_told(pool_->log, operation, outcome == get_outcome::ok,
                      outcome == get_outcome::ok ? std::uint64_t{0} : static_cast<std::uint64_t>(why.code), bytes);
  else
    destination_ = std::move(answer->destination);  // nobody waits any more: the buffer goes with the operation
}

void get_operation::run() noexcept { delete this; }

void get_operation::drop() noexcept { delete this; }

task<result<get_answer>> await_get([[maybe_unused]] task_context context, intrusive_ptr<get_cell> cell,
                                   std::uint64_t span_id) {
  std::expected<result<get_answer>, wait_end> answer = co_await cell->ended.wait();
  if (!answer) {
    cell->abandoned.store(true, std::memory_order_release);
    emit::get_abandoned(cell->pool->log, span_id);
    co_return fail(error_code::cancelled, get);
  }
  if (*answer) {
    const bool ok = (*answer)->outcome.has_value();
    emit::buffer_returned(cell->pool->log, span_id, cell->operation, ok);
  }
  co_return std::move(*answer);
}

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
