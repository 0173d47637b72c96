#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/shutdown.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/pinned/core.hpp>
#include <holdfast/telemetry/emit.hpp>

#include <utility>

namespace holdfast::inline HOLDFAST_ABI::pinned {

namespace {

/// In the order of the event `shutdown_step`.
enum class step : std::uint8_t { gate, drain, close, sweep, report };

std::int64_t ns(platform::time_point when) noexcept { return when.time_since_epoch().count(); }

}  // namespace

bool shutdown_report::clean() const noexcept {
  return arenas_unconfirmed() == 0 && arenas_not_submitted == 0 && spans_quarantined == 0 &&
         transfers_outstanding == 0 && maps_outstanding == 0 && tickets_abandoned == 0 && bytes_charged == 0;
}

std::string shutdown_report::to_json() const {
  std::string text = "{";
  const auto add = [&text](const char* name, std::uint64_t value) {
    if (text.size() > 1) text += ", ";
    text.append("\"").append(name).append("\": ").append(std::to_string(value));
  };
  add("arenas_confirmed", arenas_confirmed);
  add("arenas_unknown", arenas_unknown);
  add("arenas_timed_out", arenas_timed_out);
  add("arenas_refused", arenas_refused);
  add("arenas_not_submitted", arenas_not_submitted);
  add("spans_quarantined", spans_quarantined);
  add("transfers_outstanding", transfers_outstanding);
  add("maps_outstanding", maps_outstanding);
  add("tickets_abandoned", tickets_abandoned);
  add("buffers_held", buffers_held);
  add("bytes_charged", bytes_charged);
  return text.append("}");
}

shutdown_process::swept_arenas::swept_arenas(swept_arenas&& other) noexcept
    : first_(std::exchange(other.first_, nullptr)) {}

shutdown_process::swept_arenas::~swept_arenas() {
  while (arena* const one = first_) {
    first_ = one->next_swept;
    one->drop_share();
  }
}

shutdown_process::shutdown_process(pool_core& pool, std::uint64_t answers_gate_id,
                                   std::uint64_t finished_gate_id) noexcept
    : pool_(pool), answers_(answers_gate_id, pool.log), finished_(finished_gate_id, pool.log) {}

std::string_view shutdown_process::state_name() const noexcept {
  if (released_.load(std::memory_order_acquire)) return "released";
  if (finished()) return "swept";
  return begun() ? "closing" : "open";
}

void shutdown_process::begin(platform::time_point deadline) noexcept {
  if (begun_.exchange(true, std::memory_order_acq_rel)) return;
  running_ = finished_.enter();
  finished_.close();
  emit::shutdown_started(pool_.log, pool_.id, ns(deadline));
  // The gate closes in the call itself: what starts after it returned is refused.
  refuse_new_work(deadline);
  const task_context context(pool_.environment, "pinned.shutdown");
  intrusive_ptr<pool_core> keep(&pool_);
  if (!spawn(run(context, std::move(keep), deadline))) run_without_waiting(deadline);
}

void shutdown_process::begin_without_waiting() noexcept {
  if (begun_.exchange(true, std::memory_order_acq_rel)) return;
  running_ = finished_.enter();
  finished_.close();
  const platform::time_point now = pool_.environment.clock().now();
  emit::shutdown_started(pool_.log, pool_.id, ns(now));
  refuse_new_work(now);
  run_without_waiting(now);
}

task<void> shutdown_process::run([[maybe_unused]] task_context context, intrusive_ptr<pool_core> owner,
                                 platform::time_point deadline) {
  const intrusive_ptr<pool_core> pool = std::move(owner);
  shutdown_process& self = pool->ending;
  // Not a parameter: without memory for this frame it would have left before there is a report, and compilers disagree
  // on when.
  const gate::ticket running = std::move(self.running_);
  const platform::time_point cut = self.drain_cut(deadline);
  emit::shutdown_step(pool->log, pool->id, step::drain, ns(cut));
  const bool drained = co_await pool->operations.drain(cut);
  self.close_pool(drained, deadline);
  const swept_arenas swept = self.sweep(deadline);
  co_await self.answers_.drain(deadline);
  self.report(swept, deadline);
}

void shutdown_process::run_without_waiting(platform::time_point deadline) noexcept {
  close_pool(pool_.operations.in_flight() == 0, deadline);
  const swept_arenas swept = sweep(deadline);
  report(swept, deadline);
  running_.leave();
}

task<result<shutdown_report>> shutdown_process::wait([[maybe_unused]] task_context context,
                                                     intrusive_ptr<pool_core> pool) {
  co_await pool->ending.finished_.drain(platform::never);
  if (!pool->ending.finished()) co_return fail(error_code::cancelled, "pinned.shutdown");
  co_return pool->ending.report_;
}

void shutdown_process::refuse_new_work(platform::time_point deadline) noexcept {
  emit::shutdown_step(pool_.log, pool_.id, step::gate, ns(deadline));
  pool_.operations.close();
  pool_.reclaiming.interrupt();
  pool_.transfers.close();
}

platform::time_point shutdown_process::drain_cut(platform::time_point deadline) const noexcept {
  if (deadline == platform::never) return deadline;
  const platform::time_point now = pool_.environment.clock().now();
  // Two steps wait: the drain, and the sweep.
  return deadline <= now ? deadline : now + (deadline - now) / 2;
}

void shutdown_process::close_pool(bool drained, platform::time_point deadline) noexcept {
  report_.tickets_abandoned = drained ? 0 : pool_.operations.in_flight();
  told_waiters told;
  {
    scoped_lock vector(pool_.vector);
    emit::shutdown_step(pool_.log, pool_.id, step::close, ns(deadline));
    pool_.closed = true;
    pool_.growing.close(told);
  }
  told.tell();
}

shutdown_process::swept_arenas shutdown_process::sweep(platform::time_point deadline) noexcept {
  {
    scoped_lock vector(pool_.vector);
    emit::shutdown_step(pool_.log, pool_.id, step::sweep, ns(deadline));
    pool_.retire_all(retire_reason::shutdown);
  }
  swept_arenas swept(pool_.retiring.share_all());
  for (arena* one = swept.first(); one != nullptr; one = one->next_swept) one->join_sweep(answers_);
  answers_.close();
  // All of them at once: a slow one takes nothing from the others.
  for (arena* one = swept.first(); one != nullptr; one = one->next_swept) pool_.dispose(*one);
  return swept;
}

void shutdown_process::classify(arena& one) noexcept {
  const unmap_progress progress = one.leave_sweep();
  const arena::numbers numbers = one.observe();
  report_.spans_quarantined += numbers.quarantined;
  report_.buffers_held += numbers.live;
  if (progress == unmap_progress::confirmed || one.settled()) {
    ++report_.arenas_confirmed;
  } else if (progress == unmap_progress::withheld) {
    ++report_.arenas_not_submitted;
    one.report_unconfirmed(quarantine_reason::not_submitted);
  } else if (progress == unmap_progress::refused) {
    ++report_.arenas_refused;
    one.report_unconfirmed(quarantine_reason::unmap_refused);
  } else if (progress == unmap_progress::unknown) {
    ++report_.arenas_unknown;
    one.report_unconfirmed(quarantine_reason::unmap_unknown);
  } else {
    ++report_.arenas_timed_out;
    one.report_unconfirmed(quarantine_reason::unmap_timeout);
  }
}

void shutdown_process::report(const swept_arenas& swept, platform::time_point deadline) noexcept {
  emit::shutdown_step(pool_.log, pool_.id, step::report, ns(deadline));
  for (arena* one = swept.first(); one != nullptr; one = one->next_swept) classify(*one);
  pool_.reclaiming.stop();
  report_.transfers_outstanding = pool_.transfers.in_flight();
  report_.maps_outstanding = pool_.growing.outstanding();
  report_.bytes_charged = pool_.ledger.snapshot().charged_bytes;
  emit::shutdown_ended(pool_.log, pool_.id, report_.arenas_confirmed, report_.arenas_unconfirmed(),
                       report_.arenas_not_submitted, report_.transfers_outstanding, report_.bytes_charged);
  finished_flag_.store(true, std::memory_order_release);
}

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
