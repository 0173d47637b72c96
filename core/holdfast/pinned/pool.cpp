#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/pool.hpp>

#include <holdfast/base/completion.hpp>
#include <holdfast/base/lock.hpp>
#include <holdfast/pinned/core.hpp>
#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/telemetry/emit.hpp>

#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::pinned {

namespace {

constexpr const char* alloc = "pinned.alloc";
constexpr const char* get = "pinned.get";

/// Carries what a task ended with to its caller's handler.
template <class R>
class bridge final : public task_completion<R> {
 public:
  /// Null: host memory is out (site "pinned.bridge"); `told` is untouched.
  static bridge* make(completion<R>& told) noexcept {
    return platform::heap_fault("pinned.bridge") ? nullptr : new (std::nothrow) bridge(told);
  }
  void completed(R value) noexcept override {
    const std::unique_ptr<bridge> self(this);
    told_.complete(std::move(value));
  }
  void dropped() noexcept override { delete this; }
  cancellation* asked() noexcept { return &told_.asked(); }
  /// For a task that never ran.
  completion<R> give_back() noexcept { return std::move(told_); }

 private:
  explicit bridge(completion<R>& told) noexcept : told_(std::move(told)) {}
  completion<R> told_;
};

task<result<buffer>> allocate([[maybe_unused]] task_context context, intrusive_ptr<pool_core> pool,
                              std::uint64_t bytes, bool own_arena) {
  const gate::ticket admitted = pool->operations.enter();
  if (!admitted) co_return fail(error_code::shutting_down, alloc);
  const result<std::uint32_t> granules = granules_for(bytes, alloc);
  if (!granules) co_return std::unexpected(granules.error());

  builder* own = nullptr;
  if (own_arena || bytes >= pool->options.dedicated_arena_min) {
    const result<builder*> prepared = pool->growing.prepare_dedicated(bytes);
    if (!prepared) co_return std::unexpected(prepared.error());
    own = *prepared;
  } else {
    const result<span*> existing = pool->try_existing(*granules, bytes, alloc);
    if (existing) co_return buffer(**existing);
    if (existing.error().code != error_code::busy) co_return std::unexpected(existing.error());
  }
  span_waiter granted(*pool, *granules, bytes, own);
  if (!granted.bring_object()) co_return fail(error_code::out_of_memory, alloc, 0, sizeof(span));
  co_return co_await granted;
}

}  // namespace

// ---- Life ---------------------------------------------------------------------------------------

result<memory> memory::create(std::uint64_t id, platform::pages& pages, const task_environment& environment,
                              capacity_ledger& ledger, backend& device, const settings& options) noexcept {
  const result<void> valid = validate(options);
  if (!valid) return std::unexpected(valid.error());
  intrusive_ptr<pool_core> core = pool_core::make(id, pages, environment, ledger, device, options);
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
  const result<std::uint32_t> granules = granules_for(bytes, alloc);
  if (!granules) return std::unexpected(granules.error());
  if (bytes >= core_->options.dedicated_arena_min)
    return fail(error_code::out_of_range, alloc, 0, bytes, 1, core_->options.dedicated_arena_min - 1);
  // No ticket: nothing of this call outlives it, and arenas that left service refuse by themselves.
  if (core_->operations.closed()) return fail(error_code::shutting_down, alloc);
  emit::try_alloc_began(core_->log, core_->id, bytes);
  const result<span*> granted = core_->try_existing(*granules, bytes, alloc);
  emit::try_alloc_ended(core_->log, core_->id, granted.has_value());
  if (!granted) return std::unexpected(granted.error());
  return buffer(**granted);
}

void memory::start_alloc(std::uint64_t bytes, alloc_options how, alloc_handler handler) {
  auto told = completion<result<buffer>>::start(std::move(handler), core_->environment.executor(), alloc);
  if (!told) return;
  auto* const bridged = bridge<result<buffer>>::make(*told);
  if (bridged == nullptr) return told->complete(fail(error_code::out_of_memory, alloc));
  const task_context context(core_->environment, alloc, bridged->asked());
  intrusive_ptr<pool_core> pool = core_;
  if (start_here(allocate(context, std::move(pool), bytes, how.own_arena), *bridged)) return;
  completion<result<buffer>> back = bridged->give_back();
  bridged->dropped();
  back.complete(fail(error_code::out_of_memory, alloc));
}

// ---- Fetching -----------------------------------------------------------------------------------

void memory::start_get(const peer_id& peer, const remote_reference& source, buffer destination, get_handler handler) {
  auto told = completion<result<get_answer>>::start(std::move(handler), core_->environment.executor(), get);
  if (!told) return;
  const auto refuse = [](completion<result<get_answer>> whom, const error& why, buffer back) {
    whom.complete(get_answer{std::unexpected(why), std::move(back)});
  };
  const error no_memory = fail(error_code::out_of_memory, get).error();
  if (!destination) return refuse(std::move(*told), fail(error_code::out_of_range, get).error(), buffer());

  std::unique_ptr<get_operation> operation = get_operation::make(*core_, destination);
  if (!operation) return refuse(std::move(*told), no_memory, std::move(destination));
  auto* const bridged = bridge<result<get_answer>>::make(*told);
  if (bridged == nullptr) return refuse(std::move(*told), no_memory, operation->disarm());

  // The waiting half first: once the device has the buffer nothing of ours may fail any more.
  const std::uint64_t span_id = operation->span_id();
  const task_context context(core_->environment, get, bridged->asked());
  task<result<get_answer>> waiting = await_get(context, core_, operation->cell(), span_id);
  result<void> accepted = fail(error_code::out_of_memory, get);
  if (waiting.valid()) accepted = operation->arm(peer, source);
  if (accepted) accepted = core_->device.submit_get(*operation);
  if (!accepted) {
    completion<result<get_answer>> back = bridged->give_back();
    bridged->dropped();
    return refuse(std::move(back), accepted.error(), operation->disarm());
  }
  static_cast<void>(operation.release());
  static_cast<void>(start_here(std::move(waiting), *bridged));
}

// ---- The end ------------------------------------------------------------------------------------

void memory::start_shutdown(platform::time_point deadline, shutdown_handler handler) {
  constexpr const char* shutdown = "pinned.shutdown";
  core_->ending.begin(deadline);
  auto told = completion<result<shutdown_report>>::start(std::move(handler), core_->environment.executor(), shutdown);
  if (!told) return;
  auto* const bridged = bridge<result<shutdown_report>>::make(*told);
  if (bridged == nullptr) return told->complete(fail(error_code::out_of_memory, shutdown));
  const task_context context(core_->environment, shutdown, bridged->asked());
  intrusive_ptr<pool_core> pool = core_;
  if (start_here(shutdown_process::wait(context, std::move(pool)), *bridged)) return;
  completion<result<shutdown_report>> back = bridged->give_back();
  bridged->dropped();
  back.complete(fail(error_code::out_of_memory, shutdown));
}

result<released_report> memory::release_unconfirmed(witness gone) noexcept {
  constexpr const char* release = "pinned.release_unconfirmed";
  if (!core_->ending.finished()) return fail(error_code::invalid_state, release, core_->id);
  if (gone.epoch() == 0 || gone.incarnation() != core_->incarnation)
    return fail(error_code::invalid_argument, release, gone.incarnation());
  {
    // From here on whatever still arrives is settled on arrival: its transport does not exist any more.
    scoped_lock vector(core_->vector);
    core_->witnessed = true;
    core_->witness_fences_gets = gone.fences_gets();
  }
  released_report report;
  for (arena* one = core_->retiring.claim_all(); one != nullptr;) {
    arena* const next = one->next_claimed;
    ++report.arenas;
    report.bytes += one->charge_bytes();
    report.spans_quarantined += one->settle(true, gone.fences_gets());
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
bool memory::in_use() const noexcept { return core_->shares_observed() > 1; }

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
