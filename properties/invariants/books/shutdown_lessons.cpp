// Shutdowns of pools: their steps, and the gates that they close.

#include <properties/invariants/books/lessons.hpp>

namespace holdfast::invariants {

namespace {

void started(world& w, host_books& b, const logged_event& e) {
  pool_record& pool = b.pools[e.fields[0]];
  ++pool.shutdowns;
  pool.started_ns = e.time_ns;
  pool.started_stalled_ns = stalled_ns(w, e.host);
  pool.deadline_ns = static_cast<std::int64_t>(e.fields[1]);
  b.fibers[e.fiber].in_gate_step = e.fields[0];
}

void step(world&, host_books& b, const logged_event& e) {
  pool_record& pool = b.pools[e.fields[0]];
  pool.step = e.fields[1];
  if (pool.step == shutdown_step::sweep) pool.sweep_event = e.number;
  b.fibers[e.fiber].in_gate_step = pool.step == shutdown_step::gate ? e.fields[0] : none;
}

void ended(world&, host_books& b, const logged_event& e) { ++b.pools[e.fields[0]].ended; }

void gate_closed(world&, host_books& b, const logged_event& e) {
  ++b.gates_closed;
  const std::uint64_t pool = b.fibers[e.fiber].in_gate_step;
  if (pool == none) return;
  pool_record& p = b.pools[pool];
  (p.operations.gate == none ? p.operations : p.transfers) = {e.fields[0], false};
}

void gate_drained(world&, host_books& b, const logged_event& e) {
  for (std::size_t i = 0; i < b.pools.size(); ++i)
    for (auto* const gate : {&b.pools.at(i).operations, &b.pools.at(i).transfers})
      if (gate->gate == e.fields[0]) gate->drained = true;
}

}  // namespace

void add_shutdown_lessons(lesson_table& table) {
  table.on(event_id::shutdown_started, started);
  table.on(event_id::shutdown_step, step);
  table.on(event_id::shutdown_ended, ended);
  table.on(event_id::gate_closed, gate_closed);
  table.on(event_id::gate_drained, gate_drained);
}

}  // namespace holdfast::invariants
