// Proves that a record takes exactly one of its exits, whatever order posting, callback and sweep come in, and that
// a closed queue and a closed or full table give back what they do not take.
#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/clock.hpp>
#include <holdfast/transport/directory.hpp>
#include <holdfast/transport/operation.hpp>
#include <holdfast/transport/submission_queue.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace holdfast {
namespace {

using namespace holdfast::transport;

class record final : public operation {
 public:
  std::vector<operation_exit> exits;
  int status = 0;
  void execute() noexcept override {}
  void refuse() noexcept override {}
  void exited(operation_exit exit, int given) noexcept override {
    exits.push_back(exit);
    status = given;
  }
};

class table_test : public ::testing::Test {
 protected:
  platform::clock clock;
  event_log log{clock, 256, event_level::trace};
  operation_table table{log, 2};
  const peer_id peer{1, 2};

  void post(record& one, post_exit exit, int status = 0) {
    ASSERT_TRUE(table.admit(one, operation_kind::get, peer, 64));
    table.begin_post(one, 7);
    table.settle_post(one, {exit, status});
  }
};

using transport_operation = table_test;

TEST_F(transport_operation, done_inline_is_one_exit) {
  record one;
  post(one, post_exit::inline_done);
  EXPECT_EQ(one.exits, std::vector{operation_exit::inline_done});
  EXPECT_EQ(table.outstanding(), 0u);
}

TEST_F(transport_operation, an_error_of_the_posting_call_is_one_exit_with_its_status) {
  record one;
  post(one, post_exit::refused, -25);
  EXPECT_EQ(one.exits, std::vector{operation_exit::error});
  EXPECT_EQ(one.status, -25);
}

TEST_F(transport_operation, a_callback_after_the_posting_call_is_one_exit) {
  record one;
  post(one, post_exit::posted);
  EXPECT_TRUE(one.exits.empty());
  EXPECT_EQ(table.counts().posted, 1u);
  one.called_back(-3);
  EXPECT_EQ(one.exits, std::vector{operation_exit::callback});
  EXPECT_EQ(one.status, -3);
  EXPECT_EQ(table.counts().posted, 0u);
}

TEST_F(transport_operation, a_callback_inside_the_posting_call_waits_for_the_poster) {
  record one;
  ASSERT_TRUE(table.admit(one, operation_kind::get, peer, 64));
  table.begin_post(one, 7);
  one.called_back(-3);
  EXPECT_TRUE(one.exits.empty()) << "the poster has yet to look at the record";
  table.settle_post(one, {post_exit::posted, 0});
  EXPECT_EQ(one.exits, std::vector{operation_exit::callback});
  EXPECT_EQ(one.status, -3);
  EXPECT_EQ(table.counts().posted, 0u);
}

TEST_F(transport_operation, the_sweep_ends_what_is_left_in_order_and_nothing_twice) {
  record first;
  record second;
  post(first, post_exit::posted);
  post(second, post_exit::posted);
  first.called_back(0);
  EXPECT_EQ(table.sweep(), 1u);
  EXPECT_EQ(first.exits, std::vector{operation_exit::callback});
  EXPECT_EQ(second.exits, std::vector{operation_exit::swept});
  EXPECT_EQ(table.sweep(), 0u);
  EXPECT_EQ(table.counts().swept, 1u);
}

TEST_F(transport_operation, a_full_table_refuses_transfers_and_still_takes_hellos_and_closes) {
  record one, two, three, control;
  ASSERT_TRUE(table.admit(one, operation_kind::get, peer, 64));
  ASSERT_TRUE(table.admit(two, operation_kind::get, peer, 64));
  const auto refused = table.admit(three, operation_kind::get, peer, 64);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::busy);
  ASSERT_TRUE(table.admit(control, operation_kind::close, peer, 0));
  table.retract(one);
  EXPECT_TRUE(one.exits.empty()) << "it is the caller's again and is told nothing";
  EXPECT_TRUE(table.admit(three, operation_kind::get, peer, 64));
  table.drop(two, operation_exit::withdrawn);
  EXPECT_EQ(two.exits, std::vector{operation_exit::withdrawn});
  table.close();
  record late;
  EXPECT_EQ(table.admit(late, operation_kind::get, peer, 64).error().code, error_code::shutting_down);
  EXPECT_EQ(table.sweep(), 0u) << "who is being submitted is his submitter's to take back";
  table.begin_post(three, 7);
  table.settle_post(three, {post_exit::posted, 0});
  EXPECT_EQ(table.sweep(), 1u);
  EXPECT_EQ(three.exits, std::vector{operation_exit::swept});
  table.retract(control);
  EXPECT_TRUE(control.exits.empty());
}

TEST(transport_submission, commands_come_out_in_the_order_they_went_in) {
  submission_queue queue;
  record one, two, three;
  EXPECT_FALSE(queue.pending());
  EXPECT_TRUE(queue.push(one));
  EXPECT_TRUE(queue.push(two));
  EXPECT_TRUE(queue.push(three));
  EXPECT_TRUE(queue.pending());
  command* taken = queue.take_all();
  EXPECT_EQ(taken, &one);
  EXPECT_EQ(taken->next_command, &two);
  EXPECT_EQ(taken->next_command->next_command, &three);
  EXPECT_EQ(queue.take_all(), nullptr);
}

TEST(transport_submission, a_closed_queue_takes_nothing_and_has_given_back_everything) {
  submission_queue queue;
  record one, two, late;
  EXPECT_TRUE(queue.push(one));
  EXPECT_TRUE(queue.push(two));
  command* const left = queue.close();
  EXPECT_EQ(left, &one);
  EXPECT_EQ(left->next_command, &two);
  EXPECT_FALSE(queue.push(late));
  EXPECT_FALSE(queue.pending());
  EXPECT_EQ(queue.take_all(), nullptr);
  EXPECT_EQ(queue.close(), nullptr);
}

TEST(transport_history, an_incarnation_never_comes_back) {
  incarnation_history history(16);
  EXPECT_EQ(history.judge({5, 1}), incarnation_history::verdict::first);
  EXPECT_TRUE(history.accept({5, 1}));
  EXPECT_EQ(history.judge({5, 1}), incarnation_history::verdict::same);
  EXPECT_EQ(history.judge({5, 2}), incarnation_history::verdict::newer);
  EXPECT_TRUE(history.accept({5, 2}));
  EXPECT_EQ(history.judge({5, 1}), incarnation_history::verdict::old);
  EXPECT_EQ(history.current(5), 2u);
  EXPECT_EQ(history.judge({6, 1}), incarnation_history::verdict::first);
}

TEST(transport_history, sixty_four_lives_of_a_name_are_remembered_and_names_are_bounded) {
  incarnation_history history(2);
  for (std::uint64_t life = 1; life <= 66; ++life) EXPECT_TRUE(history.accept({5, life}));
  EXPECT_EQ(history.judge({5, 2}), incarnation_history::verdict::old);
  EXPECT_EQ(history.judge({5, 1}), incarnation_history::verdict::newer) << "the sixty-fifth before the current one";
  EXPECT_TRUE(history.accept({6, 1}));
  EXPECT_TRUE(history.accept({7, 1}));
  EXPECT_EQ(history.current(5), 0u) << "heard of longest ago";
  EXPECT_EQ(history.current(7), 1u);
}

}  // namespace
}  // namespace holdfast
