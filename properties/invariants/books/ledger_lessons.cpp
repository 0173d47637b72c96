// The budget: what is reserved, committed, and given back.

#include <properties/invariants/books/lessons.hpp>

#include <algorithm>

namespace holdfast::invariants {

namespace {

void take(ledger_record& l, std::uint64_t& from, std::uint64_t bytes) noexcept {
  if (bytes > from) l.counted_down_below = true;
  from -= std::min(from, bytes);
}

void charge(ledger_record& l, const logged_event& e) noexcept {
  l.before = l.charged;
  l.charged = e.fields[2];
}

void opened(world&, host_books& b, const logged_event& e) { b.ledgers[e.fields[0]].ceiling = e.fields[1]; }

void refused(world&, host_books& b, const logged_event& e) {
  ledger_record& l = b.ledgers[e.fields[0]];
  l.ceiling = e.fields[3];
  ++l.refusals;
}

void reserved(world&, host_books& b, const logged_event& e) {
  ledger_record& l = b.ledgers[e.fields[0]];
  l.open += e.fields[1];
  charge(l, e);
}

void dropped(world&, host_books& b, const logged_event& e) {
  ledger_record& l = b.ledgers[e.fields[0]];
  take(l, l.open, e.fields[1]);
  charge(l, e);
}

void committed(world&, host_books& b, const logged_event& e) {
  ledger_record& l = b.ledgers[e.fields[0]];
  take(l, l.open, e.fields[1]);
  l.committed += e.fields[1];
  charge(l, e);
  std::uint64_t& mapped = b.fibers[e.fiber].mapped;
  if (region_record* const region = mapped != none ? b.regions.find(mapped) : nullptr) region->charge = e.fields[1];
  mapped = none;
}

void released(world&, host_books& b, const logged_event& e) {
  ledger_record& l = b.ledgers[e.fields[0]];
  take(l, l.committed, e.fields[1]);
  charge(l, e);
}

void corrupt(world&, host_books& b, const logged_event& e) { b.ledgers[e.fields[0]].corrupt = true; }

}  // namespace

void add_ledger_lessons(lesson_table& table) {
  table.on(event_id::ledger_opened, opened);
  table.on(event_id::ledger_refused, refused);
  table.on(event_id::ledger_reserved, reserved);
  table.on(event_id::ledger_raised, reserved);
  table.on(event_id::ledger_dropped, dropped);
  table.on(event_id::ledger_committed, committed);
  table.on(event_id::ledger_released, released);
  table.on(event_id::ledger_corrupt, corrupt);
}

}  // namespace holdfast::invariants
