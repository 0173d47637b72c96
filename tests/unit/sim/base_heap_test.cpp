// Host memory that runs out at base's named sites: an error value of the operation, nothing left behind.
#include <tests/unit/both/base_support.hpp>

#include <holdfast/base/completion.hpp>
#include <holdfast/base/event_cell.hpp>
#include <sim/faults/fault_plan.hpp>
#include <sim/kernel/world.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::base_test {

namespace {

// The next allocation at `site`, and no later one, fails.
void fail_next(const char* site) {
  sim::kernel_scope kernel;
  auto wrong = sim::fault_plan::of(sim::world::current()).install({{"heap", "", 1, 1, site, 0}});
  if (wrong) expect(false, *wrong);
}

task<result<int>> leaf(task_context) { co_return 1; }

task<result<int>> with_child(task_context context) {
  // Planted here, so that it strikes the child's frame.
  fail_next("base.frame");
  auto got = co_await leaf(context);
  co_return got;
}

task<void> detached(task_context) { co_return; }

}  // namespace

TEST(BaseHeap, ATaskWithoutAFrameEndsWithAnErrorWhenItIsAwaited) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    kept_completion<result<int>> ended;
    expect(start(with_child(at.context()), ended), "the parent begins");
    const auto& got = ended.wait();
    expect(!got && got.error().code == error_code::out_of_memory &&
               std::string_view(got.error().operation) == "base.frame",
           "the child ends with out_of_memory");
    expect(at.frames.frames_out() == 0, "no frame is left");
  });
}

TEST(BaseHeap, ARootWithoutAFrameDoesNotBegin) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    fail_next("base.frame");
    auto root = leaf(at.context());
    expect(!root.valid(), "there is no frame");
    kept_completion<result<int>> ended;
    expect(!start(std::move(root), ended), "it does not begin");
    fail_next("base.frame");
    expect(!spawn(detached(at.context())), "neither does a detached one");
    expect(!ended.ended() && at.frames.frames_out() == 0, "nothing is left");
  });
}

TEST(BaseHeap, AHandlerIsToldWhenThereIsNoMemoryForItsOperation) {
  for (const char* site : {"base.cancellation", "base.completion"})
    run_on_side([site](platform::host& host) {
      counter called;
      fail_next(site);
      auto held = completion<result<int>>::start(
          [&](result<int> got) {
            expect(!got && got.error().code == error_code::out_of_memory &&
                       std::string_view(got.error().operation) == "test.ask",
                   "the handler is told");
            called.add();
          },
          host.executor(), "test.ask");
      expect(!held.has_value(), "there is no completion");
      called.wait_for(1);
      host.stop();
      expect(called.value() == 1, "once");
    });
}

}  // namespace holdfast::base_test
