// Spans: granted, held, lent, and given back.

#include <properties/invariants/books/lessons.hpp>

#include <algorithm>

namespace holdfast::invariants {

namespace {

void granted(world&, host_books& b, const logged_event& e) {
  const std::uint64_t* const f = e.fields;
  span_record& s = b.spans[f[0]];
  arena_record& a = b.arenas[f[1]];
  const bool known = s.live();
  s = span_record{.generation = f[1],
                  .offset = f[2],
                  .size = f[3],
                  .length = f[4],
                  .granted = s.granted + 1,
                  .released = s.released};
  if (known) {
    s.collides = f[0];
    return;
  }
  ++a.spans_granted;
  a.empty_since = {};
  a.said_free = f[5];
  auto at = a.live.begin();
  for (; at != a.live.end(); ++at) {
    const span_record& other = *b.spans.find(*at);
    if (other.offset < s.offset + s.size && s.offset < other.offset + other.size) s.collides = *at;
    if (other.offset >= s.offset) break;
  }
  a.live.insert(at, f[0]);
}

void released(world& w, host_books& b, const logged_event& e) {
  const std::uint64_t* const f = e.fields;
  span_record& s = b.spans[f[0]];
  arena_record& a = b.arenas[f[1]];
  ++s.released;
  s.released_wrong = s.granted == 0 || s.generation != f[1] || s.offset != f[2] || s.size != f[3];
  a.released_event = e.number;
  const auto found = std::find(a.live.begin(), a.live.end(), f[0]);
  if (found != a.live.end()) a.live.erase(found);
  a.said_free = f[4];
  if (a.live.empty()) a.empty_since = moment_of(w, e);
}

void hold_taken(world&, host_books& b, const logged_event& e) {
  ++b.spans[e.fields[0]].holds;
  ++b.arenas[e.fields[1]].holds;
  ++b.holds;
  // The backend numbers the operation when it accepts it, next on this fiber.
  b.fibers[e.fiber].held_span = e.fields[0];
}

void hold_dropped(world&, host_books& b, const logged_event& e) {
  --b.spans[e.fields[0]].holds;
  arena_record& a = b.arenas[e.fields[1]];
  if (a.holds != 0) --a.holds;
  if (b.holds != 0) --b.holds;
  if (a.holds != 0) return;
  a.quiet_since_ns = e.time_ns;
  a.quiet_event = e.number;
}

void quarantined(world&, host_books& b, const logged_event& e) { b.spans[e.fields[0]].quarantined = true; }

void discharged(world&, host_books& b, const logged_event& e) { b.spans[e.fields[0]].quarantined = false; }

void lent(world&, host_books& b, const logged_event& e) {
  span_record& s = b.spans[e.fields[0]];
  s.lent = true;
  s.operation = e.fields[1];
  b.operations[e.fields[1]].span = e.fields[0];
  b.fibers[e.fiber].held_span = none;
}

void returned(world&, host_books& b, const logged_event& e) {
  b.spans[e.fields[0]].lent = false;
  if (operation_record* const o = b.operations.find(e.fields[1])) ++o->returned;
}

}  // namespace

void add_span_lessons(lesson_table& table) {
  table.on(event_id::span_granted, granted);
  table.on(event_id::span_released, released);
  table.on(event_id::hold_taken, hold_taken);
  table.on(event_id::hold_dropped, hold_dropped);
  table.on(event_id::span_quarantined, quarantined);
  table.on(event_id::span_discharged, discharged);
  table.on(event_id::buffer_lent, lent);
  table.on(event_id::buffer_returned, returned);
}

}  // namespace holdfast::invariants
