#include <properties/invariants/books/memory_books.hpp>

#include <algorithm>

namespace holdfast::invariants {

void memory_books::forget_memory() noexcept {
  pages.forget();
  registrations.forget();
  blocks.forget();
  regions.forget();
  registered_bytes = 0;
  registered_twice = false;
}

void memory_books::discharge(registration_record& r) noexcept {
  if (r.discharged) return;
  r.discharged = true;
  const pages_record* const named = pages.find(r.pages);
  if (named != nullptr && named->block != none) registered_bytes -= std::min(registered_bytes, r.bytes);
}

void memory_books::end_region(region_record& region) noexcept {
  if (region.registration != none)
    if (registration_record* const r = registrations.find(region.registration)) discharge(*r);
  if (!region.open) return;
  region.open = false;
  if (block_record* const block = blocks.find(region.block))
    if (block->regions_open != 0) --block->regions_open;
}

}  // namespace holdfast::invariants
