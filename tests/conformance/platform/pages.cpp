// Clauses P1 to P5: ranges are filled with a mark of their own, so that an overlap, a page that kept its bytes, or a
// tombstone that was granted again shows.
#include <tests/conformance/platform/helpers.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace holdfast::conformance {

namespace {

bool all_are(const std::byte* base, std::size_t bytes, std::byte value) {
  return std::ranges::all_of(std::span(base, bytes), [&](std::byte b) { return b == value; });
}

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
  const auto first = std::bit_cast<std::uintptr_t>(a);
  const auto second = std::bit_cast<std::uintptr_t>(b);
  return first < second + b_bytes && second < first + a_bytes;
}

}  // namespace

TEST(PlatformP1, PagesAreZeroWritableAndAligned) {
  run_on_side([](platform::host& host) {
    auto& pages = host.pages();
    const std::size_t page = pages.page_size();
    expect(std::has_single_bit(page), "the page size is a power of two");
    for (const std::size_t count : {1, 3, 16}) {
      const auto base = pages.allocate(count * page);
      expect(base.has_value(), "pages are granted");
      if (!base) return;
      expect(std::bit_cast<std::uintptr_t>(*base) % page == 0, "aligned to a page");
      expect(all_are(*base, count * page, std::byte{0}), "zero at first");
      std::memset(*base, 0x5a, count * page);
      expect(all_are(*base, count * page, std::byte{0x5a}), "they keep what is written");
      pages.free(*base, count * page);
    }
  });
}

TEST(PlatformP2, LiveRangesNeverOverlap) {
  run_on_side([](platform::host& host) {
    auto& pages = host.pages();
    const std::size_t page = pages.page_size();
    std::vector<std::byte*> ranges;
    const auto bytes_of = [&](std::size_t i) { return (1 + i % 3) * page; };
    for (std::size_t i = 0; i < 24; ++i) {
      const auto base = pages.allocate(bytes_of(i));
      expect(base.has_value(), "pages are granted");
      if (!base) break;
      for (std::size_t k = 0; k < ranges.size(); ++k)
        expect(!overlap(*base, bytes_of(i), ranges[k], bytes_of(k)), "apart from every other range");
      std::memset(*base, static_cast<int>(i + 1), bytes_of(i));
      ranges.push_back(*base);
    }
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      expect(all_are(ranges[i], bytes_of(i), static_cast<std::byte>(i + 1)), "nobody else wrote here");
      pages.free(ranges[i], bytes_of(i));
    }
  });
}

TEST(PlatformP2, ThreadsThatAllocateAtOnceGetRangesOfTheirOwn) {
  run_on_side([](platform::host& host) {
    auto& pages = host.pages();
    const std::size_t page = pages.page_size();
    team threads;
    for (unsigned t = 1; t <= 3; ++t)
      threads.start([&, t] {
        for (unsigned i = 0; i < effort(200, 3); ++i) {
          const auto base = pages.allocate(2 * page);
          expect(base.has_value(), "pages are granted");
          if (!base) return;
          std::memset(*base, static_cast<int>(t), 2 * page);
          platform::yield();
          expect(all_are(*base, 2 * page, static_cast<std::byte>(t)), "nobody else wrote here");
          pages.free(*base, 2 * page);
        }
      });
  });
}

TEST(PlatformP3, FreedRangesAreGrantedAgainAsZeros) {
  run_on_side([](platform::host& host) {
    auto& pages = host.pages();
    const std::size_t bytes = 16 * pages.page_size();
    // More in total than any address space limit of a test would allow at once.
    for (unsigned i = 0; i < effort(2'000, 20); ++i) {
      const auto base = pages.allocate(bytes);
      expect(base.has_value(), "pages are granted again and again");
      if (!base) return;
      expect(base.value()[0] == std::byte{0} && base.value()[bytes - 1] == std::byte{0}, "nothing of the last tenant");
      std::memset(*base, 0xff, bytes);
      pages.free(*base, bytes);
    }
  });
}

TEST(PlatformP4, ATombstoneReadsAsZerosAndIsNotGrantedAgain) {
  run_on_side([](platform::host& host) {
    auto& pages = host.pages();
    const std::size_t bytes = 4 * pages.page_size();
    const auto grave = pages.allocate(bytes);
    expect(grave.has_value(), "pages are granted");
    if (!grave) return;
    std::memset(*grave, 0x77, bytes);
    expect(pages.tombstone(*grave, bytes), "a live range becomes a tombstone");
    expect(all_are(*grave, bytes, std::byte{0}), "it reads as zeros");
    std::vector<std::byte*> others;
    for (unsigned i = 0; i < 32; ++i) {
      const auto base = pages.allocate(bytes);
      expect(base.has_value(), "pages are granted");
      if (!base) break;
      expect(!overlap(*base, bytes, *grave, bytes), "not where the tombstone stands");
      std::memset(*base, 0x11, bytes);
      others.push_back(*base);
    }
    expect(all_are(*grave, bytes, std::byte{0}), "it still reads as zeros");
    for (std::byte* const base : others) pages.free(base, bytes);
    pages.free(*grave, bytes);
    const auto again = pages.allocate(bytes);
    expect(again.has_value(), "after the tombstone was freed pages are granted");
    if (again) pages.free(*again, bytes);
  });
}

TEST(PlatformP5, ARefusedAllocationIsAnErrorNumberAndChangesNothing) {
  run_on_side([](platform::host& host) {
    auto& pages = host.pages();
    const std::size_t page = pages.page_size();
    const auto kept = pages.allocate(page);
    expect(kept.has_value(), "pages are granted");
    if (!kept) return;
    std::memset(*kept, 0x33, page);
    const auto refused = pages.allocate(std::size_t{1} << 60);
    expect(!refused.has_value(), "an exabyte is refused");
    if (!refused) expect(refused.error() > 0, "with an error number");
    expect(all_are(*kept, page, std::byte{0x33}), "live ranges are untouched");
    const auto next = pages.allocate(page);
    expect(next.has_value(), "the next request is granted");
    if (next) pages.free(*next, page);
    pages.free(*kept, page);
  });
}

}  // namespace holdfast::conformance
