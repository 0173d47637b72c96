#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/core.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/telemetry/emit.hpp>

#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::pinned {

namespace {

/// Gates of one pool in events: the pool's number and which of them.
constexpr std::uint64_t gate_id(std::uint64_t pool, std::uint64_t which) noexcept { return pool * 16 + which; }

}  // namespace

intrusive_ptr<pool_core> pool_core::make(std::uint64_t id, platform::pages& pages, const task_environment& environment,
                                         capacity_ledger& ledger, backend& device, const settings& options,
                                         std::shared_ptr<void> surroundings) noexcept {
  if (platform::heap_fault("pinned.core")) return {};
  return adopt_new(new (std::nothrow)
                       pool_core(id, pages, environment, ledger, device, options, std::move(surroundings)));
}

pool_core::pool_core(std::uint64_t id, platform::pages& pages, const task_environment& environment,
                     capacity_ledger& ledger, backend& device, const settings& options,
                     std::shared_ptr<void> surroundings) noexcept
    : surroundings(std::move(surroundings)),
      id(id),
      pages(pages),
      environment(environment),
      log(environment.log()),
      ledger(ledger),
      device(device),
      options(options),
      page_bytes(pages.page_size()),
      declared(device.declared()),
      incarnation(device.incarnation()),
      epoch(device.transport_epoch()),
      operations(gate_id(id, 1), log),
      transfers(gate_id(id, 2), log),
      vector(lock_ranks::pinned_arena_vector),
      held(id, log),
      growing(*this),
      reclaiming(*this),
      ending(*this, gate_id(id, 3), gate_id(id, 4)) {
  emit::pool_opened(log, id, options.arena_reclaim_after_ns, options.retain_arena_bytes, options.unmap_timeout_ns,
                    options.unmap_retry_max, options.reclaim_on_pressure);
}

pool_core::~pool_core() {
  arena* next = nullptr;
  for (arena* one = first_pooled.load(std::memory_order_acquire); one != nullptr; one = next) {
    next = one->next_pooled.load(std::memory_order_acquire);
    delete one;
  }
}

span* pool_core::cut_existing(std::uint32_t granules, std::uint64_t length, span*& carried) noexcept {
  for (arena* one = first_pooled.load(std::memory_order_acquire); one != nullptr;
       one = one->next_pooled.load(std::memory_order_acquire)) {
    if (span* const granted = one->cut(granules, length, carried).granted) return granted;
  }
  return nullptr;
}

span* pool_core::try_existing(std::uint32_t granules, std::uint64_t length, error_code& why) noexcept {
  span* carried = nullptr;
  span* granted = nullptr;
  why = error_code::busy;
  arena* one = first_pooled.load(std::memory_order_acquire);
  while (one != nullptr) {
    const arena::cut_result cut = one->cut(granules, length, carried);
    granted = cut.granted;
    if (granted != nullptr) break;
    if (cut.answer == arena::cut_answer::needs_object) {
      carried = span::make();
      if (carried != nullptr) continue;  // the same arena again, with an object to carry its granules
      why = error_code::out_of_memory;
      break;
    }
    one = one->next_pooled.load(std::memory_order_acquire);
  }
  if (carried != nullptr) span::unmake(carried);
  return granted;
}

void pool_core::publish(arena& built, bool adopted) noexcept {
  built.publish(adopted);
  in_service.push_back(built);
  if (built.dedicated()) return;
  ++pooled_count;
  if (std::exchange(built.in_chain, true)) return;  // built in the place of a vacant one
  (last_pooled == nullptr ? first_pooled : last_pooled->next_pooled).store(&built, std::memory_order_release);
  last_pooled = &built;
}

void pool_core::leave(arena& leaving) noexcept {
  in_service.erase(leaving);
  if (!leaving.dedicated()) --pooled_count;
  retiring.add(leaving);
}

pool_core::idle_sweep pool_core::retire_idle(reclaim_mode mode) noexcept {
  idle_sweep swept;
  scoped_lock lock(vector);
  if (closed) return swept;
  reclaim_rule rule{mode, environment.clock().now(), options.arena_reclaim_after_ns, false};
  emit::reclaim_began(log, id, mode, rule.now.time_since_epoch().count());
  std::uint64_t pooled_bytes = 0;
  for (arena& one : in_service)
    if (!one.dedicated()) pooled_bytes += one.charge_bytes();
  arena* older = nullptr;
  for (arena* one = in_service.empty() ? nullptr : &in_service.back(); one != nullptr; one = older) {
    older = in_service.before(*one);
    const std::uint64_t charge = one->charge_bytes();
    rule.above_floor = pooled_bytes >= charge && pooled_bytes - charge >= options.retain_arena_bytes;
    const arena::idle_answer answer = one->retire_if_idle(rule);
    swept.waits = swept.waits || answer == arena::idle_answer::waits;
    if (answer != arena::idle_answer::leaves) continue;
    if (!one->dedicated()) pooled_bytes -= charge;
    one->add_share();  // the sweep's
    leave(*one);
    one->next_reclaimed = std::exchange(swept.first, one);
    ++swept.victims;
    swept.bytes += charge;
  }
  emit::reclaim_ended(log, id, mode, swept.victims, swept.bytes);
  return swept;
}

void pool_core::retire(arena& leaving, retire_reason reason) noexcept {
  leaving.retire(reason);
  if (leaving.serving())
    leave(leaving);
  else
    retiring.add(leaving);
}

void pool_core::dispose(arena& retired) noexcept {
  bool forced = false;
  {
    scoped_lock lock(vector);
    forced = witnessed;
  }
  if (!forced)
    retired.unmap_when_idle();
  else if (retired.claim_settle())
    retired.settle(gone);
}

void pool_core::retire_all(retire_reason reason) noexcept {
  while (!in_service.empty()) retire(in_service.front(), reason);
}

void pool_core::abandon() noexcept {
  reclaiming.stop();
  arena* left = nullptr;
  {
    scoped_lock lock(vector);
    closed = true;
    retire_all(retire_reason::shutdown);
    left = retiring.forget_all();
  }
  while (left != nullptr) {
    arena& one = *left;
    left = one.next_claimed;
    one.forget();
    one.drop_share();
  }
}

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
