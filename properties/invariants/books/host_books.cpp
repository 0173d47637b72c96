#include <properties/invariants/books/host_books.hpp>

namespace holdfast::invariants {

void host_books::forget() noexcept {
  forget_memory();
  forget_arenas();
  forget_pools();
  forget_quarantines();
  forget_operations();
  forget_peers();
  forget_transport();
  forget_fibers();
  touched = false;
}

pool_record* host_books::pool_of_region(std::uint64_t region) noexcept {
  const region_record* const r = regions.find(region);
  const block_record* const block = r != nullptr ? blocks.find(r->block) : nullptr;
  pool_record* const pool = block != nullptr && block->pool != none ? pools.find(block->pool) : nullptr;
  return pool != nullptr && pool->opened ? pool : nullptr;
}

bool host_books::extent_of(const span_record& s, std::uint64_t& in_pages, std::uint64_t& first,
                           std::uint64_t& last) noexcept {
  const arena_record* const arena = arenas.find(s.generation);
  if (arena == nullptr) return false;
  const region_record* const region = regions.find(arena->region != none ? arena->region : s.generation);
  if (region == nullptr) return false;
  const block_record* const block = blocks.find(region->block);
  if (block == nullptr || block->pages == none) return false;
  in_pages = block->pages;
  first = s.offset * granule_bytes;
  last = first + s.size * granule_bytes;
  return true;
}

std::uint64_t host_books::live_span_in(std::uint64_t in_pages, std::uint64_t first, std::uint64_t last,
                                       std::uint64_t except) noexcept {
  const pages_record* const p = pages.find(in_pages);
  if (p == nullptr) return none;
  const arena_record* const arena = arenas.find(p->generation);
  if (arena == nullptr) return none;
  for (const std::uint64_t id : arena->live) {
    if (id == except) continue;
    const span_record& s = *spans.find(id);
    if (s.offset * granule_bytes < last && first < (s.offset + s.size) * granule_bytes) return id;
  }
  return none;
}

bool host_books::registered(std::uint64_t generation) noexcept {
  const arena_record* const arena = arenas.find(generation);
  if (arena == nullptr) return false;
  const region_record* const region = regions.find(arena->region != none ? arena->region : generation);
  if (region == nullptr || region->confirmed || region->forced) return false;
  const registration_record* const r = registrations.find(region->registration);
  return r != nullptr && r->alive;
}

std::uint64_t host_books::operation_of_write(const sim::logged_event& e) noexcept {
  if (e.fields[4] != 0) {
    const request_record* const r = requests.find(e.fields[4]);
    return r != nullptr ? r->operation : none;
  }
  const fiber_record* const fiber = fibers.find(e.fiber);
  return fiber != nullptr ? fiber->operation : none;
}

}  // namespace holdfast::invariants
