// What the kernel says about our pages: forked children do not see them, mappings come back, and a tombstone holds
// addresses without memory.
#include <holdfast/platform/pages.hpp>

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace holdfast {
namespace {

bool is_mapped(std::byte* base, std::size_t bytes) {
  std::vector<unsigned char> present(bytes / 4096 + 1);
  return ::mincore(base, bytes, present.data()) == 0;
}

std::size_t resident_pages(std::byte* base, std::size_t bytes) {
  std::vector<unsigned char> present(bytes / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(::mincore(base, bytes, present.data()), 0);
  return static_cast<std::size_t>(std::ranges::count_if(present, [](unsigned char page) { return page & 1; }));
}

std::size_t mapping_count() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

// Runs `body` in a child; answers its exit code, or 1000 + the signal that ended it.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(RealPages, AForkedChildDoesNotHaveThem) {
  platform::pages pages;
  const std::size_t bytes = 4 * pages.page_size();
  const auto base = pages.allocate(bytes);
  ASSERT_TRUE(base.has_value());
  std::memset(*base, 0x6b, bytes);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  // Whoever allocates in the child may get the addresses, so what counts is that our bytes are not there. Asked
  // through the kernel, which answers an error where a read would end the child.
  const auto sees_mark = [&] {
    char seen = 0;
    return ::write(ends[1], *base, 1) == 1 && ::read(ends[0], &seen, 1) == 1 && seen == 0x6b;
  };
  EXPECT_TRUE(sees_mark());
  EXPECT_EQ(in_child([&] { return sees_mark() ? 1 : 0; }), 0);
  ::close(ends[0]);
  ::close(ends[1]);
  pages.free(*base, bytes);
}

TEST(RealPages, MappingsComeBackWhenRangesAreFreed) {
  platform::pages pages;
  const std::size_t bytes = 4 * pages.page_size();
  std::vector<std::byte*> ranges;
  const auto cycle = [&] {
    for (unsigned i = 0; i < 100; ++i) {
      const auto base = pages.allocate(bytes);
      ASSERT_TRUE(base.has_value());
      ranges.push_back(*base);
    }
    // Every other one first: that splits whatever the kernel had merged.
    for (std::size_t i = 0; i < ranges.size(); i += 2) pages.free(ranges[i], bytes);
    for (std::size_t i = 1; i < ranges.size(); i += 2) pages.free(ranges[i], bytes);
    ranges.clear();
  };
  cycle();
  const auto before = mapping_count();
  for (unsigned i = 0; i < 100; ++i) cycle();
  // The heap may have taken a mapping or two for itself.
  EXPECT_LE(mapping_count(), before + 4);
}

TEST(RealPages, ATombstoneKeepsAddressesAndGivesPagesBack) {
  platform::pages pages;
  const std::size_t bytes = 64 * pages.page_size();
  const auto base = pages.allocate(bytes);
  ASSERT_TRUE(base.has_value());
  std::memset(*base, 0x42, bytes);
  EXPECT_EQ(resident_pages(*base, bytes), 64u);
  ASSERT_TRUE(pages.tombstone(*base, bytes));
  EXPECT_TRUE(is_mapped(*base, bytes));
  EXPECT_EQ(resident_pages(*base, bytes), 0u);
  EXPECT_TRUE(std::all_of(*base, *base + bytes, [](std::byte b) { return b == std::byte{0}; }));
  pages.free(*base, bytes);
  EXPECT_FALSE(is_mapped(*base, bytes));
}

TEST(RealPagesDeathTest, ATombstoneCannotBeWritten) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  platform::pages pages;
  const std::size_t bytes = pages.page_size();
  const auto base = pages.allocate(bytes);
  ASSERT_TRUE(base.has_value());
  ASSERT_TRUE(pages.tombstone(*base, bytes));
  EXPECT_DEATH(std::memset(*base, 1, bytes), "");
  pages.free(*base, bytes);
}

TEST(RealPages, SizesThatAreNoPagesAreRefused) {
  platform::pages pages;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, pages.page_size() + 1}) {
    const auto base = pages.allocate(bytes);
    ASSERT_FALSE(base.has_value()) << bytes;
    EXPECT_EQ(base.error(), EINVAL) << bytes;
  }
  const auto base = pages.allocate(pages.page_size());
  ASSERT_TRUE(base.has_value());
  EXPECT_FALSE(pages.tombstone(*base, pages.page_size() / 2));
  (*base)[0] = std::byte{1};
  EXPECT_EQ((*base)[0], std::byte{1}) << "a refused tombstone changes nothing";
  pages.free(*base, pages.page_size());
}

TEST(RealPages, AnExhaustedAddressSpaceIsAnErrorNumber) {
#if defined(HOLDFAST_ASAN) || defined(HOLDFAST_TSAN)
  GTEST_SKIP() << "sanitizers reserve more address space than any limit";
#endif
  EXPECT_EQ(in_child([] {
              const rlimit limit{std::size_t{1} << 30, std::size_t{1} << 30};
              if (::setrlimit(RLIMIT_AS, &limit) != 0) return 1;
              platform::pages pages;
              const auto base = pages.allocate(std::size_t{2} << 30);
              if (base.has_value()) return 2;
              return base.error() == ENOMEM ? 0 : 3;
            }),
            0);
}

TEST(RealPagesDeathTest, FreeingWhatWasNeverGrantedStopsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  platform::pages pages;
  EXPECT_DEATH(pages.free(reinterpret_cast<std::byte*>(0x1001), pages.page_size()), "never allocated");
}

}  // namespace
}  // namespace holdfast
