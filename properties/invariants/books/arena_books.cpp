#include <properties/invariants/books/arena_books.hpp>

#include <algorithm>

namespace holdfast::invariants {

void arena_books::forget_arenas() noexcept {
  arenas.forget();
  spans.forget();
  holds = 0;
  arena_initial_bytes = arena_max_bytes = page_bytes = 0;
}

std::uint64_t arena_books::taken_granules(const arena_record& a) noexcept {
  std::uint64_t taken = 0;
  for (const std::uint64_t id : a.live) taken += spans.find(id)->size;
  return taken;
}

std::uint64_t arena_books::longest_free(const arena_record& a) noexcept {
  std::uint64_t longest = 0, at = 0;
  for (const std::uint64_t id : a.live) {
    const span_record& s = *spans.find(id);
    if (s.offset > at) longest = std::max(longest, s.offset - at);
    at = std::max(at, s.offset + s.size);
  }
  const std::uint64_t end = a.bytes / granule_bytes;
  return end > at ? std::max(longest, end - at) : longest;
}

}  // namespace holdfast::invariants
