// Arenas: published, retired, settled, and which of them could go.

#include <properties/invariants/books/lessons.hpp>

namespace holdfast::invariants {

namespace {

// Which pooled arenas could go without falling below what is kept warm, and since when.
void see_floor(world& w, host_books& b, const logged_event& e) noexcept {
  std::uint64_t pooled = 0;
  const auto serves = [](const arena_record& a) { return a.published != 0 && a.retired == 0 && !a.dedicated; };
  for (std::size_t i = 0; i < b.arenas.size(); ++i)
    if (serves(b.arenas.at(i))) pooled += b.arenas.at(i).charge;
  for (std::size_t i = 0; i < b.arenas.size(); ++i) {
    arena_record& a = b.arenas.at(i);
    if (!serves(a)) continue;
    const pool_record* const pool = b.pool_of(a);
    if (pool == nullptr || pooled - a.charge < pool->retain_bytes)
      a.above_floor_since = {};
    else if (!a.above_floor_since.set())
      a.above_floor_since = moment_of(w, e);
  }
}

void published(world& w, host_books& b, const logged_event& e) {
  const std::uint64_t* const f = e.fields;
  arena_record& a = b.arenas[f[0]];
  ++a.published;
  a.region = f[1];
  a.bytes = f[2];
  a.charge = f[3];
  a.dedicated = f[4] != 0;
  a.adopted = f[5] != 0;
  a.published_event = e.number;
  if (const region_record* const region = b.regions.find(f[1]))
    if (const block_record* const block = b.blocks.find(region->block))
      if (pages_record* const pages = b.pages.find(block->pages)) pages->generation = f[0];
  if (a.adopted && a.live.empty()) a.empty_since = moment_of(w, e);
  if (pool_record* const pool = a.dedicated ? nullptr : b.pool_of(a)) ++pool->pooled;
  see_floor(w, b, e);
}

void retired(world& w, host_books& b, const logged_event& e) {
  const std::uint64_t* const f = e.fields;
  arena_record& a = b.arenas[f[0]];
  ++a.retired;
  a.region = f[1];
  a.reason = f[4];
  a.retired_at = moment_of(w, e);
  a.retired_event = e.number;
  if (pool_record* const pool = a.dedicated || a.published == 0 ? nullptr : b.pool_of(a);
      pool != nullptr && pool->pooled != 0)
    --pool->pooled;
  see_floor(w, b, e);
  if (f[4] != retire_reason::shutdown) return;
  for (std::size_t i = 0; i < b.pools.size(); ++i)
    if (b.pools.at(i).shutdowns != 0) ++b.pools.at(i).swept;
}

void unconfirmed(world&, host_books& b, const logged_event& e) { b.arenas[e.fields[0]].charge = e.fields[2]; }

void settled(world&, host_books& b, const logged_event& e) {
  const std::uint64_t* const f = e.fields;
  arena_record& a = b.arenas[f[0]];
  ++a.settled;
  a.charge = f[2];
  a.forced = f[3] != 0;
  region_record* const region = b.regions.find(f[1]);
  if (region == nullptr) return;
  region->settled = true;
  if (!a.forced) return;
  region->forced = true;
  b.end_region(*region);
}

}  // namespace

void add_arena_lessons(lesson_table& table) {
  table.on(event_id::arena_published, published);
  table.on(event_id::arena_retired, retired);
  table.on(event_id::arena_unconfirmed, unconfirmed);
  table.on(event_id::arena_settled, settled);
}

}  // namespace holdfast::invariants
