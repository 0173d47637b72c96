// Pools in service: growth, reclamation, and allocations that the budget refused.

#include <properties/invariants/books/lessons.hpp>

#include <holdfast/base/error.hpp>

namespace holdfast::invariants {

namespace {

void opened(world&, host_books& b, const logged_event& e) {
  const std::uint64_t* const f = e.fields;
  pool_record& pool = b.pools[f[0]];
  pool = pool_record{};
  pool.opened = true;
  pool.reclaim_after_ns = static_cast<std::int64_t>(f[1]);
  pool.retain_bytes = f[2];
  pool.retries = f[4];
  pool.pressure = f[5] != 0;
}

void growth_claimed(world&, host_books& b, const logged_event& e) {
  pool_record& pool = b.pools[e.fields[0]];
  pool.claimed_event = e.number;
  pool.pooled_at_claim = pool.pooled;
}

void growth_started(world&, host_books& b, const logged_event& e) {
  pool_record& pool = b.pools[e.fields[0]];
  ++pool.building;
  b.fibers[e.fiber].growing = e.fields[0];
  if (e.fields[2] != 0) return;
  pool.overlapped = pool.growing != 0;
  ++pool.growing;
}

void growth_ended(world&, host_books& b, const logged_event& e) {
  pool_record& pool = b.pools[e.fields[0]];
  if (pool.building != 0) --pool.building;
  if (arena_record* const a = b.arenas.find(e.fields[1])) a->served_event = e.number;
  if (e.fields[3] == 0 && pool.growing != 0) --pool.growing;
}

void reclaim_began(world&, host_books& b, const logged_event& e) {
  fiber_record& fiber = b.fibers[e.fiber];
  fiber.reclaims = e.fields[0];
  fiber.reclaim_event = e.number;
  if (e.fields[1] == reclaim_mode::pressure) ++b.pools[e.fields[0]].pressure_sweeps;
}

void pressure_relieved(world&, host_books& b, const logged_event& e) {
  ++b.reliefs[relief_id(e.fields[0], e.fields[1])].relieved;
  ++b.pools[e.fields[0]].reliefs;
}

void alloc_refused(world&, host_books& b, const logged_event& e) {
  if (e.fields[1] != 0) ++b.reliefs[relief_id(e.fields[0], e.fields[1])].refused;
  if (e.fields[3] == static_cast<std::uint64_t>(holdfast::error_code::cancelled)) ++b.cancelled;
}

void try_alloc_began(world&, host_books& b, const logged_event& e) {
  fiber_record& fiber = b.fibers[e.fiber];
  fiber.in_try_alloc = e.fields[0];
  fiber.try_event = e.number;
  fiber.try_bytes = e.fields[1];
}

void try_alloc_ended(world&, host_books& b, const logged_event& e) { b.fibers[e.fiber].in_try_alloc = none; }

}  // namespace

void add_pool_lessons(lesson_table& table) {
  table.on(event_id::pool_opened, opened);
  table.on(event_id::growth_claimed, growth_claimed);
  table.on(event_id::growth_started, growth_started);
  table.on(event_id::growth_ended, growth_ended);
  table.on(event_id::reclaim_began, reclaim_began);
  table.on(event_id::pressure_relieved, pressure_relieved);
  table.on(event_id::alloc_refused, alloc_refused);
  table.on(event_id::try_alloc_began, try_alloc_began);
  table.on(event_id::try_alloc_ended, try_alloc_ended);
}

}  // namespace holdfast::invariants
