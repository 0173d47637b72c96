// The extent index: fit, coalescing, nodes that come back, and giving back twice. The model-based search for more
// stands in properties/base_extent.cpp.
#include <tests/unit/both/base_support.hpp>

#include <holdfast/base/extent_index.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::base_test {

namespace {

// "[0+4 free][4+2]": every extent in order.
std::string drawn(const extent_index& index) {
  std::string out;
  index.for_each([&](std::uint32_t offset, std::uint32_t granules, bool is_free) {
    out += "[" + std::to_string(offset) + "+" + std::to_string(granules) + (is_free ? " free]" : "]");
  });
  return out;
}

unsigned length(const extent_node* chain) {
  unsigned count = 0;
  for (; chain != nullptr; chain = chain->next_spare()) ++count;
  return count;
}

}  // namespace

TEST(ExtentIndex, AFreshIndexGrantsItsOwnFullSizeOnce) {
  for (const std::uint32_t granules : {1u, 2u, 255u, 256u, 257u, 4'096u, 0xffffffffu}) {
    extent_index index(granules);
    extent_node all, none;
    EXPECT_EQ(index.largest_free(), granules);
    const auto digest = index.digest();
    const auto taken = index.take(granules, all);
    ASSERT_TRUE(taken.granted);
    EXPECT_EQ(taken.spare, nullptr) << "the first node belongs to the index";
    EXPECT_FALSE(index.take(1, none).granted);
    EXPECT_EQ(index.largest_free(), 0u);
    EXPECT_EQ(index.free_granules(), 0u);
    EXPECT_EQ(index.put(all), nullptr) << "it becomes the free range";
    EXPECT_TRUE(index.whole() && index.consistent());
    EXPECT_EQ(index.digest(), digest);
  }
}

TEST(ExtentIndex, TakesTheSmallestThatFitsAndOfEqualOnesTheLowest) {
  extent_index index(100);
  extent_node n[9];
  // Free ranges of 5, 3, 8, 3 granules between granted ones, and the rest.
  const std::uint32_t sizes[] = {5, 1, 3, 1, 8, 1, 3, 1};
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(index.take(sizes[i], n[i]).granted);
  for (const int i : {0, 2, 4, 6}) EXPECT_EQ(index.put(n[i]), nullptr);
  ASSERT_EQ(drawn(index), "[0+5 free][5+1][6+3 free][9+1][10+8 free][18+1][19+3 free][22+1][23+77 free]");
  extent_node m[5];
  const auto exact = index.take(3, m[0]);
  EXPECT_TRUE(exact.granted);
  EXPECT_EQ(m[0].offset(), 6u);
  EXPECT_EQ(length(exact.spare), 1u) << "an exact fit frees the node of the free range";
  ASSERT_TRUE(index.take(2, m[1]).granted);
  EXPECT_EQ(m[1].offset(), 19u) << "the smaller range is cut";
  ASSERT_TRUE(index.take(6, m[2]).granted);
  EXPECT_EQ(m[2].offset(), 10u);
  ASSERT_TRUE(index.take(9, m[3]).granted);
  EXPECT_EQ(m[3].offset(), 23u);
  EXPECT_TRUE(index.consistent());
}

TEST(ExtentIndex, JoinsWithBothNeighborsAndGivesTheirNodesBack) {
  extent_index index(12);
  extent_node a, b, c, d;
  for (extent_node* each : {&a, &b, &c, &d}) ASSERT_TRUE(index.take(3, *each).granted);
  EXPECT_EQ(length(index.put(b)), 0u);
  EXPECT_EQ(length(index.put(d)), 0u);
  EXPECT_EQ(index.free_extents(), 2u);
  EXPECT_EQ(length(index.put(c)), 2u) << "three ranges became one";
  EXPECT_EQ(drawn(index), "[0+3][3+9 free]");
  EXPECT_EQ(length(index.put(a)), 1u);
  EXPECT_TRUE(index.whole() && index.consistent());
  EXPECT_EQ(index.free_extents(), 1u);
}

TEST(ExtentIndex, LargeRangesOfOneBinAreSearchedForTheSmallestThatFits) {
  extent_index index(10'000);
  extent_node n[8], m;
  const std::uint32_t sizes[] = {1'100, 1, 1'040, 1, 1'200, 1, 1'060, 1};
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(index.take(sizes[i], n[i]).granted);
  for (const int i : {0, 2, 4, 6}) index.put(n[i]);
  ASSERT_TRUE(index.take(1'050, m).granted);
  EXPECT_EQ(m.offset(), 3u + 1'100 + 1'040 + 1'200) << "1,060 is the smallest of at least 1,050 among 1,040 to 1,200";
  EXPECT_TRUE(index.consistent());
}

TEST(ExtentIndex, TheDigestForgetsTheOrder) {
  extent_index one(64), other(64);
  extent_node a[3], b[3];
  for (auto& each : a) ASSERT_TRUE(one.take(7, each).granted);
  for (auto& each : b) ASSERT_TRUE(other.take(7, each).granted);
  one.put(a[0]);
  one.put(a[2]);
  EXPECT_NE(one.digest(), other.digest());
  other.put(b[2]);
  other.put(b[0]);
  EXPECT_EQ(one.digest(), other.digest());
}

TEST(ExtentIndex, StopsTheProcessWhenARangeIsGivenBackTwice) {
  const auto seen = stop_on_side([](platform::host&) {
    extent_index index(10);
    extent_node a, b;
    index.take(2, a);
    index.take(2, b);
    index.put(a);
    index.put(a);
  });
  EXPECT_TRUE(seen.stopped);
  EXPECT_NE(seen.said.find("not granted"), std::string::npos) << seen.said;
}

}  // namespace holdfast::base_test
