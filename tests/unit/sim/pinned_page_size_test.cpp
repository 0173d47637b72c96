// PM-T41: on a system with pages of 64 KiB what is allocated and registered is rounded to its pages, not to granules.
#include <sim/hardware/host_memory.hpp>
#include <sim/kernel/world.hpp>
#include <tests/unit/both/pinned_support.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace holdfast::pinned_test {

namespace {

constexpr std::uint64_t page = 64 << 10;

void make_pages_large() { sim::memory_of(*sim::world::current().running_host()).set_page_bytes(page); }

pinned::settings odd_settings() {
  pinned::settings options;
  options.initial_arena_bytes = page + granule;  // no multiple of a page
  options.max_arena_bytes = 4 * page;
  options.dedicated_arena_min = 2 * page;
  return options;
}

}  // namespace

TEST(PinnedPageSize, ArenasAreWholePagesOfSixtyFourKib) {
  run_on_side([](platform::host& host) {
    make_pages_large();
    small_pool at(host, 64 * page, odd_settings());
    auto small = at.must_alloc(1);
    expect(at.charged() == 2 * page, "a pooled arena is rounded up to pages");
    expect(reinterpret_cast<std::uintptr_t>(small.bytes().data()) % page == 0, "and begins at one");
    auto large = at.must_alloc(2 * page + 1);
    expect(at.charged() == 5 * page, "so is an arena of its own");
    expect(large.size() == 2 * page + 1, "while the buffer is as long as was asked");
    small.reset();
    large.reset();
  });
}

TEST(PinnedPageSize, TheSystemRefusesWhatIsNoWholePage) {
  run_on_side([](platform::host& host) {
    make_pages_large();
    expect(host.pages().page_size() == page, "the side says how large its pages are");
    expect(!host.pages().allocate(4096), "a block is whole pages");
    const auto whole = host.pages().allocate(page);
    expect(whole.has_value(), "one page is");
    if (whole) host.pages().free(*whole, page);
  });
}

}  // namespace holdfast::pinned_test
