#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/pool.hpp>

#include <holdfast/base/completion.hpp>
#include <holdfast/base/lock.hpp>
#include <holdfast/pinned/core.hpp>
#include <holdfast/pinned/task_handler.hpp>
#include <holdfast/telemetry/emit.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::pinned {

namespace {

constexpr const char* alloc = "pinned.alloc";
constexpr const char* get = "pinned.get";

/// From an arena that is registered for it: its own, or the next pooled one.
task<result<buffer>> grow([[maybe_unused]] task_context context, intrusive_ptr<pool_core> pool, std::uint32_t granules,
                          std::uint64_t bytes, bool dedicated) {
  builder* own = nullptr;
  if (dedicated) {
    const result<builder*> prepared = pool->growing.prepare_dedicated(bytes);
    if (!prepared) co_return std::unexpected(prepared.error());
    own = *prepared;
  }
  span_waiter granted(*pool, granules, bytes, own);
  if (!granted.bring_object()) co_return fail(error_code::out_of_memory, alloc, 0, sizeof(span));
  co_return co_await granted;
}

result<buffer> refused(pool_core& pool, std::uint64_t attempt, std::uint64_t bytes, const error& why) noexcept {
  emit::alloc_refused(pool.log, pool.id, attempt, bytes, static_cast<std::uint64_t>(why.code));
  return std::unexpected(why);
}

task<result<buffer>> allocate(task_context context, intrusive_ptr<pool_core> pool, std::uint64_t bytes,
                              bool own_arena) {
  const gate::ticket admitted = pool->operations.enter();
  if (!admitted) co_return refused(*pool, 0, bytes, fail(error_code::shutting_down, alloc).error());
  const result<std::uint32_t> granules = granules_for(bytes, alloc);
  if (!granules) co_return refused(*pool, 0, bytes, granules.error());
  const bool dedicated = own_arena || bytes >= pool->options.dedicated_arena_min;
  if (!dedicated) {
    error_code why{};
    if (span* const existing = pool->try_existing(*granules, bytes, why)) co_return buffer(*existing);
    if (why != error_code::busy) co_return refused(*pool, 0, bytes, fail(why, alloc, 0, sizeof(span)).error());
  }
  result<buffer> first = co_await grow(context, pool, *granules, bytes, dedicated);
  if (first) co_return std::move(first);
  // What is larger than the whole budget gets no room from anybody.
  if (first.error().code != error_code::budget_exceeded || !pool->options.reclaim_on_pressure ||
      bytes > pool->ledger.ceiling_bytes())
    co_return refused(*pool, 0, bytes, first.error());

  // Before anybody is refused: whatever nobody uses is given back, whatever time and floor say, and then once more.
  const platform::time_point until =
      pool->environment.clock().now() + std::chrono::nanoseconds(pool->options.unmap_timeout_ns);
  const std::uint64_t wanted = first.error().numbers[0];
  const result<std::uint64_t> attempt = co_await reclaimer::relieve(context, pool, wanted, until);
  if (!attempt) co_return refused(*pool, 0, bytes, attempt.error());
  result<buffer> second = co_await grow(context, pool, *granules, bytes, dedicated);
  if (second) co_return std::move(second);
  co_return refused(*pool, *attempt, bytes, second.error());
}

}  // namespace

// ---- Life ---------------------------------------------------------------------------------------

result<memory> memory::create(std::uint64_t id, platform::pages& pages, const task_environment& environment,
                              capacity_ledger& ledger, backend& device, const settings& options,
                              std::shared_ptr<void> surroundings) noexcept {
  const result<void> valid = validate(options);
  if (!valid) return std::unexpected(valid.error());
  intrusive_ptr<pool_core> core =
      pool_core::make(id, pages, environment, ledger, device, options, std::move(surroundings));
  if (!core) return fail(error_code::out_of_memory, "pinned.create", id);
  return memory(std::move(core));
}

memory::memory(intrusive_ptr<pool_core> core) noexcept : core_(std::move(core)) {}

memory::memory(memory&& other) noexcept = default;

memory::~memory() {
  if (core_) core_->abandon();
}

// ---- Allocation ---------------------------------------------------------------------------------

result<buffer> memory::try_alloc(std::uint64_t bytes) noexcept {
  pool_core& core = *core_;
  const std::uint32_t granules = granules_of(bytes);
  if (granules == 0 || bytes >= core.options.dedicated_arena_min)
    return fail(error_code::out_of_range, alloc, 0, bytes, 1, core.options.dedicated_arena_min - 1);
  // No ticket: nothing of this call outlives it, and arenas that left service refuse by themselves.
  if (core.operations.closed()) return fail(error_code::shutting_down, alloc);
  emit::try_alloc_began(core.log, core.id, bytes);
  error_code why{};
  span* const granted = core.try_existing(granules, bytes, why);
  emit::try_alloc_ended(core.log, core.id, granted != nullptr,
                        granted != nullptr ? std::uint64_t{0} : static_cast<std::uint64_t>(why));
  if (granted == nullptr) return fail(why, alloc, 0, bytes);
  return buffer(*granted);
}

void memory::start_alloc(std::uint64_t bytes, alloc_options how, alloc_handler handler) {
  start_with_handler<result<buffer>>(core_->environment, alloc, std::move(handler), [&](task_context context) {
    return allocate(context, core_, bytes, how.own_arena);
  });
}

reclaim_report memory::reclaim_idle() noexcept { return core_->reclaiming.sweep(reclaim_mode::asked); }

// ---- Fetching -----------------------------------------------------------------------------------

void memory::start_get(const peer_id& peer, const remote_reference& source, buffer destination, get_handler handler) {
  using answer = result<get_answer>;
  auto told = completion<answer>::start(std::move(handler), core_->environment.executor(), get);
  if (!told) return;
  const auto refused = [](const error& why, buffer back) { return get_answer{std::unexpected(why), std::move(back)}; };
  const error no_memory = fail(error_code::out_of_memory, get).error();
  if (!destination) return told->complete(refused(fail(error_code::out_of_range, get).error(), buffer()));

  std::unique_ptr<get_operation> operation = get_operation::make(*core_, destination);
  if (!operation) return told->complete(refused(no_memory, std::move(destination)));
  task_handler<answer>* const waiting = task_handler<answer>::make(*told);
  if (waiting == nullptr) return told->complete(refused(no_memory, operation->disarm()));

  // The waiting half first: once the device has the buffer nothing of ours may fail any more.
  const std::uint64_t span_id = operation->span_id();
  const task_context context(core_->environment, get, waiting->asked());
  task<answer> wait = await_get(context, operation->cell(), span_id);
  result<void> accepted = fail(error_code::out_of_memory, get);
  if (wait.valid()) accepted = operation->arm(peer, source);
  if (accepted) accepted = core_->device.submit_get(*operation);
  if (!accepted) return waiting->tell(refused(accepted.error(), operation->disarm()));
  static_cast<void>(operation.release());
  static_cast<void>(start_here(std::move(wait), *waiting));
}

// ---- The end ------------------------------------------------------------------------------------

void memory::start_shutdown(platform::time_point deadline, shutdown_handler handler) {
  core_->ending.begin(deadline);
  start_with_handler<result<shutdown_report>>(
      core_->environment, "pinned.shutdown", std::move(handler),
      [&](task_context context) { return shutdown_process::wait(context, core_); });
}

shutdown_report memory::shut_down_without_waiting() noexcept {
  core_->ending.begin_without_waiting();
  return core_->ending.report_so_far();
}

task<result<shutdown_report>> memory::shutdown(task_context context, memory* self, platform::time_point deadline) {
  intrusive_ptr<pool_core> pool = self->core_;
  pool->ending.begin(deadline);
  co_return co_await shutdown_process::wait(context, std::move(pool));
}

result<released_report> memory::release_unconfirmed(witness gone) noexcept {
  constexpr const char* release = "pinned.release_unconfirmed";
  if (!core_->ending.finished()) return fail(error_code::invalid_state, release, core_->id);
  if (gone.epoch() != core_->epoch || gone.incarnation() != core_->incarnation)
    return fail(error_code::invalid_argument, release, gone.incarnation(), gone.epoch(), core_->epoch);
  {
    // From here on whatever still arrives is settled on arrival: its transport does not exist any more.
    scoped_lock vector(core_->vector);
    if (!core_->witnessed) core_->gone = evidence::transport_gone(gone);
    core_->witnessed = true;
  }
  released_report report;
  for (arena* one = core_->retiring.claim_all(); one != nullptr;) {
    arena* const next = one->next_claimed;
    ++report.arenas;
    report.bytes += one->charge_bytes();
    report.spans_quarantined += one->settle(core_->gone);
    one = next;
  }
  emit::forced_release(core_->log, core_->id, gone.epoch(), report.arenas, report.bytes);
  core_->ending.set_released();
  return report;
}

// ---- Looking ------------------------------------------------------------------------------------

std::uint64_t memory::registered_bytes() const noexcept { return core_->ledger.snapshot().charged_bytes; }
std::uint64_t memory::budget_bytes() const noexcept { return core_->ledger.ceiling_bytes(); }
std::uint64_t memory::arena_count() const { return snapshot().pool.arena_count; }
std::uint64_t memory::live_spans() const { return snapshot().pool.live_spans; }
std::uint64_t memory::in_flight_transfers() const { return snapshot().pool.in_flight; }
memory_snapshot memory::snapshot() const { return take_snapshot(*core_); }

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
