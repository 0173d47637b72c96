// Quarantines: what enters, what it waits for, and how it leaves.

#include <properties/invariants/books/lessons.hpp>

#include <algorithm>

namespace holdfast::invariants {

namespace {

// The entry that an event is about, or null where its kind is none.
quarantined_record* entry_of(host_books& b, const logged_event& e) {
  return e.fields[1] < quarantine_kinds ? &b.quarantined[e.fields[1]][e.fields[2]] : nullptr;
}

void count_down(quarantine_record& q, std::uint64_t bytes) noexcept {
  q.entries -= std::min<std::uint64_t>(q.entries, 1);
  q.bytes -= std::min(q.bytes, bytes);
}

void entered(world&, host_books& b, const logged_event& e) {
  const std::uint64_t* const f = e.fields;
  quarantine_record& q = b.quarantines[f[0]];
  quarantined_record* const r = entry_of(b, e);
  if (r == nullptr) return;
  ++r->entered;
  r->quarantine = f[0];
  r->bytes = f[3];
  r->accepts = f[5];
  r->operation = r->epoch = r->context = r->first_fence = r->last_fence = 0;
  ++q.entries;
  q.bytes += r->bytes;
}

void awaits(world&, host_books& b, const logged_event& e) {
  quarantined_record* const r = entry_of(b, e);
  if (r == nullptr) return;
  r->operation = e.fields[3];
  r->epoch = e.fields[4];
  r->context = e.fields[5];
}

void fence_begun(world&, host_books& b, const logged_event& e) {
  quarantined_record* const r = entry_of(b, e);
  if (r == nullptr) return;
  if (r->first_fence == 0) r->first_fence = e.fields[3];
  r->last_fence = e.fields[3];
}

void left(world&, host_books& b, const logged_event& e) {
  quarantine_record& q = b.quarantines[e.fields[0]];
  quarantined_record* const r = entry_of(b, e);
  if (r == nullptr) return;
  ++r->left;
  count_down(q, e.fields[3]);
}

void given_up(world&, host_books& b, const logged_event& e) {
  quarantine_record& q = b.quarantines[e.fields[0]];
  quarantined_record* const r = entry_of(b, e);
  if (r == nullptr) return;
  ++r->abandoned;
  count_down(q, e.fields[3]);
}

void abandoned(world&, host_books& b, const logged_event& e) {
  quarantine_record& q = b.quarantines[e.fields[0]];
  q.entries_before = q.entries;
  q.bytes_before = q.bytes;
  q.entries = q.bytes = 0;
  for (auto& kind : b.quarantined)
    for (std::size_t i = 0; i < kind.size(); ++i)
      if (kind.at(i).quarantine == e.fields[0] && kind.at(i).inside()) ++kind.at(i).abandoned;
}

}  // namespace

void add_quarantine_lessons(lesson_table& table) {
  table.on(event_id::quarantine_entered, entered);
  table.on(event_id::quarantine_awaits, awaits);
  table.on(event_id::quarantine_fence_begun, fence_begun);
  table.on(event_id::quarantine_left, left);
  table.on(event_id::quarantine_given_up, given_up);
  table.on(event_id::quarantine_abandoned, abandoned);
}

}  // namespace holdfast::invariants
