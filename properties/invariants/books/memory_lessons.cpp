// Pages, registrations, blocks and regions: who owns what, and what a device can reach.

#include <properties/invariants/books/lessons.hpp>

namespace holdfast::invariants {

namespace {

void pages_owned(world&, host_books& b, const logged_event& e) {
  b.pages[e.fields[0]] = pages_record{.bytes = e.fields[1], .owned = true};
  b.fibers[e.fiber].pages = e.fields[0];
}

void pages_gone(world&, host_books& b, const logged_event& e) {
  if (pages_record* const p = b.pages.find(e.fields[0])) p->owned = false;
}

void tombstone_refused(world&, host_books& b, const logged_event& e) {
  if (pages_record* const p = b.pages.find(e.fields[0])) p->refused = true;
}

void registered(world&, host_books& b, const logged_event& e) {
  const std::uint64_t* const f = e.fields;
  for (std::size_t i = 0; i < b.registrations.size(); ++i)
    if (const registration_record& r = b.registrations.at(i); r.pages == f[1] && r.alive) b.registered_twice = true;
  b.registrations[f[0]] = registration_record{.pages = f[1], .offset = f[2], .bytes = f[3], .alive = true};
  if (const pages_record* const p = b.pages.find(f[1]); p != nullptr && p->block != none) b.registered_bytes += f[3];
  if (b.registration_fiber == no_fiber) b.registration_fiber = e.fiber;
}

void deregistered(world&, host_books& b, const logged_event& e) {
  registration_record& r = b.registrations[e.fields[0]];
  r.alive = false;
  b.discharge(r);
}

void deregister_failed(world&, host_books& b, const logged_event& e) { b.registrations[e.fields[0]].failed = true; }

void block_allocated(world&, host_books& b, const logged_event& e) {
  block_record& block = b.blocks[e.fields[0]];
  block.bytes = e.fields[1];
  std::uint64_t& pages = b.fibers[e.fiber].pages;
  block.pages = pages;
  if (pages_record* const p = b.pages.find(pages)) p->block = e.fields[0];
  pages = none;
}

void block_freed(world&, host_books& b, const logged_event& e) { b.blocks[e.fields[0]].freed = true; }

void map_submitted(world&, host_books& b, const logged_event& e) {
  block_record& block = b.blocks[e.fields[0]];
  ++block.maps_open;
  block.mapped = true;
  std::uint64_t& growing = b.fibers[e.fiber].growing;
  block.pool = growing;
  growing = none;
}

void map_answered(world&, host_books& b, const logged_event& e) {
  const std::uint64_t* const f = e.fields;
  block_record& block = b.blocks[f[0]];
  if (block.maps_open != 0) --block.maps_open;
  if (f[3] == 0) return;
  region_record& region = b.regions[f[1]];
  region.block = f[0];
  region.bytes = f[2];
  region.open = true;
  ++block.regions_open;
  b.fibers[e.fiber].mapped = f[1];
  for (std::size_t i = b.registrations.size(); i-- != 0;) {
    registration_record& r = b.registrations.at(i);
    if (r.pages != block.pages || r.region != none) continue;
    r.region = f[1];
    region.registration = b.registrations.id_at(i);
    break;
  }
}

void unmap_submitted(world&, host_books& b, const logged_event& e) {
  region_record& region = b.regions[e.fields[0]];
  ++region.unmaps;
  ++region.unanswered;
  ++region.accepted;
  if (arena_record* const a = b.arenas.find(e.fields[1])) ++a->unmaps;
}

void unmap_answered(world&, host_books& b, const logged_event& e) {
  region_record& region = b.regions[e.fields[0]];
  if (region.unanswered != 0) --region.unanswered;
  region.last_refused = e.fields[2] == verdict::refused;
  if (region.last_refused && region.accepted != 0) --region.accepted;
  if (e.fields[2] != verdict::confirmed) return;
  region.confirmed = true;
  b.end_region(region);
}

}  // namespace

void add_memory_lessons(lesson_table& table) {
  table.on(hardware_event::pages_owned, pages_owned);
  table.on(hardware_event::pages_returned, pages_gone);
  table.on(hardware_event::pages_tombstoned, pages_gone);
  table.on(hardware_event::pages_tombstone_refused, tombstone_refused);
  table.on(hardware_event::nic_registered, registered);
  table.on(hardware_event::nic_deregistered, deregistered);
  table.on(hardware_event::nic_deregister_failed, deregister_failed);
  table.on(event_id::block_allocated, block_allocated);
  table.on(event_id::block_freed, block_freed);
  table.on(event_id::map_submitted, map_submitted);
  table.on(event_id::map_answered, map_answered);
  table.on(event_id::unmap_submitted, unmap_submitted);
  table.on(event_id::unmap_answered, unmap_answered);
}

}  // namespace holdfast::invariants
