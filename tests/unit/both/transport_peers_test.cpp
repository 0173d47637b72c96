// Proves what is remembered of the lives of a name, the dead among them, and that whoever waits for a transport that hangs
// is told once, also if its answer comes after all.
#include <holdfast/platform/abi.hpp>

#include <holdfast/transport/directory.hpp>
#include <holdfast/transport/requests.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace holdfast {
namespace {

using transport::call_book;
using transport::incarnation_history;
using transport::pending_call;
using verdict = incarnation_history::verdict;

TEST(transport_peers, a_life_that_was_replaced_never_comes_back) {
  incarnation_history lives(8);
  EXPECT_EQ(lives.judge({1, 10}), verdict::first);
  ASSERT_TRUE(lives.accept({1, 10}));
  EXPECT_EQ(lives.judge({1, 10}), verdict::same);
  EXPECT_EQ(lives.judge({1, 11}), verdict::newer);
  ASSERT_TRUE(lives.accept({1, 11}));
  EXPECT_EQ(lives.judge({1, 10}), verdict::old) << "a delayed hello of the old life";
  EXPECT_EQ(lives.judge({2, 10}), verdict::first) << "another name";
}

TEST(transport_peers, a_life_that_was_buried_is_old_and_its_name_may_live_again) {
  incarnation_history lives(8);
  ASSERT_TRUE(lives.accept({1, 10}));
  ASSERT_TRUE(lives.bury({1, 10}));
  EXPECT_EQ(lives.judge({1, 10}), verdict::old);
  EXPECT_EQ(lives.current(1), 0u);
  EXPECT_EQ(lives.judge({1, 11}), verdict::newer);
  ASSERT_TRUE(lives.accept({1, 11}));
  EXPECT_EQ(lives.judge({1, 11}), verdict::same);
  EXPECT_EQ(lives.judge({1, 10}), verdict::old);
}

TEST(transport_peers, burying_a_life_that_nobody_heard_of_leaves_the_one_that_lives) {
  incarnation_history lives(8);
  ASSERT_TRUE(lives.accept({1, 10}));
  ASSERT_TRUE(lives.bury({1, 9}));
  EXPECT_EQ(lives.judge({1, 9}), verdict::old);
  EXPECT_EQ(lives.judge({1, 10}), verdict::same);
  ASSERT_TRUE(lives.bury({2, 5}));
  EXPECT_EQ(lives.judge({2, 5}), verdict::old);
  ASSERT_TRUE(lives.bury({2, 5})) << "twice is once";
}

TEST(transport_peers, of_a_names_older_lives_the_last_64_are_remembered) {
  incarnation_history lives(8);
  for (std::uint64_t life = 1; life <= incarnation_history::remembered_max + 2; ++life)
    ASSERT_TRUE(lives.accept({1, life}));
  EXPECT_EQ(lives.judge({1, 1}), verdict::newer) << "forgotten";
  EXPECT_EQ(lives.judge({1, 2}), verdict::old);
}

class caller final : public pending_call {
 public:
  explicit caller(bool reachable) : reachable_(reachable) {}
  unsigned told = 0;
  error_code why{};

 private:
  bool take_share() noexcept override { return reachable_; }
  void tell(const error& reason) noexcept override {
    ++told;
    why = reason.code;
  }
  bool reachable_;
};

TEST(transport_peers, callers_of_a_transport_that_hangs_are_told_once_and_later_ones_are_not_taken) {
  call_book book;
  caller first(true), answered(true), on_its_way(false), late(true);
  ASSERT_TRUE(book.add(first));
  ASSERT_TRUE(book.add(answered));
  ASSERT_TRUE(book.add(on_its_way));
  book.remove(answered);
  error hung;
  hung.code = error_code::timed_out;
  book.tell_all(hung);
  EXPECT_EQ(first.told, 1u);
  EXPECT_EQ(first.why, error_code::timed_out);
  EXPECT_EQ(answered.told, 0u);
  EXPECT_EQ(on_its_way.told, 0u) << "its own answer is being given";
  EXPECT_FALSE(book.add(late));
  book.remove(first);
  book.remove(on_its_way);
}

}  // namespace
}  // namespace holdfast
