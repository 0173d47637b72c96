// Tasks: values, stack, resumption, cancellation and the end of the executor. Each body runs with real threads, and in
// a world for each of several seeds.
#include <tests/unit/both/base_support.hpp>

#include <holdfast/base/event_cell.hpp>
#include <holdfast/base/waiter.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

namespace holdfast::base_test {

namespace {

[[gnu::noinline]] std::uintptr_t stack_here() noexcept {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

task<result<int>> plus_one(task_context, int value) { co_return value + 1; }

task<result<int>> failing(task_context) { co_return fail(error_code::busy, "test"); }

task<result<std::uintptr_t>> depth(task_context) { co_return stack_here(); }

// Deepest stack, in bytes below `top`, of `count` awaits in a row.
task<result<std::uintptr_t>> many_awaits(task_context context, std::uintptr_t top, unsigned count) {
  std::uintptr_t deepest = 0;
  for (unsigned i = 0; i < count; ++i) {
    auto at = co_await depth(context);
    if (!at) co_return std::unexpected(at.error());
    if (top - *at > deepest) deepest = top - *at;
  }
  co_return deepest;
}

struct question {
  event_cell<int> answer;
};

// The test outlives the cells and waits for the task.
task<result<int>> sum_of_answers(task_context context, std::shared_ptr<std::vector<question>> questions) {
  int sum = 0;
  for (auto& each : *questions) {
    auto answer = co_await each.answer.wait();
    if (!answer) co_return fail(error_code::cancelled, context.operation());
    sum += *answer;
  }
  co_return sum;
}

task<result<int>> through_levels(task_context context, std::shared_ptr<std::vector<question>> questions, int levels) {
  if (levels == 0) {
    auto sum = co_await sum_of_answers(context, std::move(questions));
    co_return sum;
  }
  auto below = co_await through_levels(context, std::move(questions), levels - 1);
  if (!below) co_return std::unexpected(below.error());
  co_return *below + 1;
}

std::shared_ptr<std::vector<question>> make_questions(std::size_t count) {
  return std::make_shared<std::vector<question>>(count);
}

task<result<wait_end>> delayed(task_context, platform::time_point until) {
  auto end = co_await delay_until(until);
  co_return end;
}

task<result<wait_end>> child_of_delayed(task_context context, platform::time_point until) {
  auto end = co_await delayed(context.shielded(), until);
  co_return end;
}

// Says where it is destroyed.
struct sentinel {
  explicit sentinel(counter& gone) : gone_(&gone) {}
  sentinel(sentinel&& other) noexcept : gone_(std::exchange(other.gone_, nullptr)) {}
  ~sentinel() {
    if (gone_ != nullptr) gone_->add();
  }
  counter* gone_;
};

task<result<int>> holding(task_context, sentinel held, std::shared_ptr<question> asked, platform::time_point until) {
  auto answer = co_await asked->answer.wait(until);
  const sentinel local = std::move(held);
  if (!answer) co_return -1;
  co_return *answer;
}

task<result<int>> holding_parent(task_context context, sentinel held, sentinel for_child,
                                 std::shared_ptr<question> asked, platform::time_point until) {
  auto answer = co_await holding(context, std::move(for_child), std::move(asked), until);
  const sentinel local = std::move(held);
  co_return answer;
}

task<void> detached(task_context, sentinel held, std::shared_ptr<question> asked) {
  auto answer = co_await asked->answer.wait();
  const sentinel local = std::move(held);
  (void)answer;
}

}  // namespace

TEST(Task, AChildsValueAndItsErrorReachTheParent) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    kept_completion<result<int>> one;
    kept_completion<result<int>> two;
    expect(start(plus_one(at.context(), 41), one), "a task begins");
    expect(start(failing(at.context()), two), "a task begins");
    expect(one.wait().value_or(0) == 42, "the value arrives");
    expect(!two.wait() && two.wait().error().code == error_code::busy, "the error arrives");
    expect(at.frames.frames_out() == 0, "no frame is left");
  });
}

TEST(Task, AMillionAwaitsNeedNoStack) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    const unsigned count = effort(1'000'000, 20'000);
    kept_completion<result<std::uintptr_t>> deepest;
    expect(start_here(many_awaits(at.context(), stack_here(), count), deepest), "a task begins");
    expect(deepest.ended(), "what never suspends ends on the stack of who began it");
    // Unsigned: a stack that grew the other way would be huge.
    expect(deepest.wait().value_or(~std::uintptr_t{0}) < 16 * 1024, "the stack stays small");
  });
}

TEST(Task, AnswersOfOtherThreadsResumeItInOrder) {
  run_on_side(
      [](platform::host& host) {
        surroundings at(host);
        const std::size_t count = effort(20'000, 4);
        auto questions = make_questions(count);
        kept_completion<result<int>> sum;
        expect(start(sum_of_answers(at.context(), questions), sum), "a task begins");
        {
          team others;
          for (unsigned member = 0; member < 2; ++member)
            others.start([&, member] {
              for (std::size_t i = member; i < count; i += 2)
                expect((*questions)[i].answer.complete(1), "an answer that is waited for is taken");
            });
        }
        expect(sum.wait().value_or(0) == static_cast<int>(count), "every answer arrives once");
        expect(at.frames.frames_out() == 0, "no frame is left");
      },
      2);
}

TEST(Task, AChildThatIsAnsweredWhileItsStarterIsStillLeavingResumesItsParentOnce) {
  run_on_side(
      [](platform::host& host) {
        surroundings at(host);
        for (unsigned round = 0; round < effort(3'000, 1); ++round) {
          auto questions = make_questions(2);
          kept_completion<result<int>> sum;
          team others;
          others.start([&] {
            for (auto& each : *questions) expect(each.answer.complete(10), "an answer is taken");
          });
          expect(start_here(through_levels(at.context(), questions, 3), sum), "a task begins");
          expect(sum.wait().value_or(0) == 23, "each level goes on once");
        }
        expect(at.frames.frames_out() == 0, "no frame is left");
      },
      2);
}

TEST(Task, ADelayEndsAtItsDeadlineAndNotBefore) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    const auto until = at.in(2 * millisecond);
    kept_completion<result<wait_end>> ended;
    expect(start(delayed(at.context(), until), ended), "a task begins");
    expect(ended.wait().value_or(wait_end::signaled) == wait_end::timed_out, "it times out");
    expect(host.clock().now() >= until, "not before its deadline");
  });
}

TEST(Task, ACancellationEndsAWaitAsAValue) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    auto asked = cancellation::make();
    kept_completion<result<wait_end>> ended;
    expect(start(delayed(at.context("test", asked.get()), platform::never), ended), "a task begins");
    asked->request();
    asked->request();
    expect(ended.wait().value_or(wait_end::signaled) == wait_end::cancelled, "it is cancelled");
    kept_completion<result<wait_end>> later;
    expect(start(delayed(at.context("test", asked.get()), at.patience()), later), "a task begins");
    expect(later.wait().value_or(wait_end::signaled) == wait_end::cancelled, "so is a wait that begins afterwards");
    asked->request();
  });
}

TEST(Task, AShieldedPartIsNotCancelled) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    auto asked = cancellation::make();
    asked->request();
    kept_completion<result<wait_end>> ended;
    expect(start(child_of_delayed(at.context("test", asked.get()), at.in(millisecond)), ended), "a task begins");
    expect(ended.wait().value_or(wait_end::signaled) == wait_end::timed_out, "it waits for its deadline");
  });
}

TEST(Task, OfAnswerDeadlineAndCancellationExactlyOneWins) {
  run_on_side(
      [](platform::host& host) {
        surroundings at(host);
        for (unsigned round = 0; round < effort(2'000, 1); ++round) {
          auto asked = cancellation::make();
          auto cell = std::make_shared<question>();
          counter gone;
          bool taken = false;
          kept_completion<result<int>> ended;
          {
            team others;
            others.start([&] {
              int value = 7;
              taken = cell->answer.complete(std::move(value));
              expect(value == 7, "the producer keeps what was refused");
            });
            others.start([&] { asked->request(); });
            expect(start(holding(at.context("test", asked.get()), sentinel(gone), cell,
                                 at.in(platform::duration(round % 3 == 0 ? 1 : 20'000))),
                         ended),
                   "a task begins");
          }
          const int answer = ended.wait().value_or(-2);
          expect(answer == (taken ? 7 : -1), "the consumer has the answer if and only if the producer has not");
          expect(gone.value() == 1, "the frame is gone before the completion is told");
        }
        expect(at.frames.frames_out() == 0, "no frame is left");
      },
      2);
}

TEST(Task, ADetachedRootOutlivesItsCallerAndOwnsItself) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    counter gone;
    auto cell = std::make_shared<question>();
    [&] { expect(spawn(detached(at.context(), sentinel(gone), cell)), "a task begins"); }();
    expect(gone.value() == 0, "it waits");
    expect(cell->answer.complete(1), "it is still there to be answered");
    gone.wait_for(1);
    host.stop();
    expect(gone.value() == 1, "its content is destroyed once");
    expect(at.frames.frames_out() == 0, "no frame is left");
  });
}

TEST(Task, ARootWhoseResumptionIsRefusedIsDestroyedWithItsChildren) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    counter gone;
    auto cell = std::make_shared<question>();
    kept_completion<result<int>> ended;
    expect(start_here(holding_parent(at.context(), sentinel(gone), sentinel(gone), cell, platform::never), ended),
           "a task begins");
    host.stop();
    expect(!ended.ended(), "it waits for its answer");
    expect(cell->answer.complete(1), "the cell takes the answer");
    expect(ended.wait_dropped(), "the completion hears that the root was dropped");
    expect(gone.value() == 2, "what the frames held is destroyed");
    expect(at.frames.frames_out() == 0, "no frame is left");
  });
}

TEST(Task, ARootThatWaitsForATimerIsDroppedWithTheTimer) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    counter gone;
    auto cell = std::make_shared<question>();
    kept_completion<result<int>> ended;
    expect(start_here(holding_parent(at.context(), sentinel(gone), sentinel(gone), cell, at.patience()), ended),
           "a task begins");
    host.stop();
    expect(ended.wait_dropped(), "the completion hears that the root was dropped");
    expect(gone.value() == 2, "what the frames held is destroyed");
    int late = 1;
    expect(!cell->answer.complete(std::move(late)), "a late answer is refused");
  });
}

TEST(Task, ATaskIsDroppedAtOnceIfItsExecutorWasStoppedBefore) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    host.stop();
    counter gone;
    auto cell = std::make_shared<question>();
    kept_completion<result<int>> never_begun;
    expect(!start(holding(at.context(), sentinel(gone), cell, platform::never), never_begun), "it does not begin");
    expect(gone.value() == 1, "its frame is gone");
    kept_completion<result<int>> ended;
    expect(start_here(holding_parent(at.context(), sentinel(gone), sentinel(gone), cell, at.patience()), ended),
           "the part before the first suspension runs");
    expect(ended.wait_dropped(), "a timer that cannot be armed drops the root");
    expect(gone.value() == 3, "what the frames held is destroyed");
    expect(at.frames.frames_out() == 0, "no frame is left");
  });
}

TEST(Task, ATaskThatIsNeverStartedGivesItsFrameBack) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    counter gone;
    {
      const auto unused = holding(at.context(), sentinel(gone), std::make_shared<question>(), platform::never);
      expect(unused.valid(), "it has a frame");
    }
    expect(gone.value() == 1 && at.frames.frames_out() == 0, "parameters and frame are gone");
  });
}

TEST(EventCell, KeepsAnAnswerThatCameBeforeTheQuestion) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    counter gone;
    auto cell = std::make_shared<question>();
    expect(cell->answer.complete(5), "nobody gave up");
    kept_completion<result<int>> ended;
    expect(start(holding(at.context(), sentinel(gone), cell, platform::time_point{}), ended), "a task begins");
    expect(ended.wait().value_or(0) == 5, "an answer that is there wins over a deadline that passed");
  });
}

TEST(EventCell, RefusesAnAnswerAfterItsConsumerGaveUp) {
  run_on_side([](platform::host&) {
    event_cell<std::unique_ptr<int>> cell;
    expect(cell.abandon(), "nothing came before");
    auto value = std::make_unique<int>(3);
    expect(!cell.complete(std::move(value)), "the answer is refused");
    expect(value != nullptr && *value == 3, "and still the producer's");
    event_cell<int> other;
    expect(other.complete(1), "the answer is kept");
    expect(!other.abandon() && other.completed() && other.take() == 1, "giving up too late finds it");
  });
}

TEST(EventCell, StopsTheProcessAtASecondAnswer) {
  const auto seen = stop_on_side([](platform::host&) {
    event_cell<int> cell;
    (void)cell.complete(1);
    (void)cell.complete(2);
  });
  EXPECT_TRUE(seen.stopped);
  EXPECT_NE(seen.said.find("completed twice"), std::string::npos) << seen.said;
}

TEST(FramePool, KeepsFramesUpToItsBoundAndGivesThemOutAgain) {
  run_on_side([](platform::host&) {
    frame_pool pool(1024);
    void* const first = pool.allocate(300);
    void* const second = pool.allocate(900);
    expect(first != nullptr && second != nullptr && pool.frames_out() == 2, "two frames are out");
    frame_pool::release(first);
    expect(pool.allocate(290) == first, "a frame of the same class is the one that was kept");
    frame_pool::release(first);
    frame_pool::release(second);
    expect(pool.frames_out() == 0, "none is out");
    frame_pool none(0);
    void* const heap = none.allocate(10);
    expect(heap != nullptr && none.frames_out() == 1, "a pool that keeps nothing counts");
    frame_pool::release(heap);
  });
}

}  // namespace holdfast::base_test
