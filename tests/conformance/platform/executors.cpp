// Clauses X1 to X6. Items count how often they were run and dropped: together always once.
#include <tests/conformance/platform/helpers.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/executor.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

namespace holdfast::conformance {

namespace {

class counted_item final : public platform::timer_item {
 public:
  explicit counted_item(std::move_only_function<void()> body = [] {}) : body_(std::move(body)) {}
  ~counted_item() = default;
  void run() noexcept override {
    body_();
    ran.fetch_add(1);
  }
  void drop() noexcept override { dropped.fetch_add(1); }

  platform::atomic<unsigned> ran{0};
  platform::atomic<unsigned> dropped{0};

 private:
  std::move_only_function<void()> body_;
};

}  // namespace

TEST(PlatformX1, PostNeverRunsTheItemInline) {
  run_on_side([](platform::host& host) {
    const auto executor = host.executor();
    counter ran;
    const auto poster = platform::this_thread_number();
    const auto body = [&] {
      expect(platform::this_thread_number() != poster, "it runs on a thread of the executor");
      ran.add();
    };
    counted_item items[3] = {counted_item(body), counted_item(body), counted_item(body)};
    for (auto& item : items) expect(executor.post(item), "a running executor takes the item");
    ran.wait_for(3);
    host.stop();
    for (auto& item : items) expect(item.ran.load() == 1, "each of them ran once");
  });
}

TEST(PlatformX1, PostFromAnItemRunsTheNextOneLater) {
  run_on_side([](platform::host& host) {
    const auto executor = host.executor();
    counter ran;
    bool inside = false;
    const auto later = [&] {
      expect(!inside, "the first item is over");
      ran.add();
    };
    counted_item second(later);
    counted_item third(later);
    counted_item first([&] {
      inside = true;
      expect(executor.post(second), "an item may post");
      expect(executor.arm(third, platform::time_point::min()), "an item may arm");
      inside = false;
      ran.add();
    });
    expect(executor.post(first), "a running executor takes the item");
    ran.wait_for(3);
    host.stop();
  });
}

TEST(PlatformX2, OneThreadRunsItemsInTheOrderPosted) {
  run_on_side([](platform::host& host) {
    const auto executor = host.executor();
    const unsigned count = effort(2'000, 6);
    counter ran;
    std::vector<unsigned> order;
    order.reserve(count);
    std::vector<std::unique_ptr<counted_item>> items;
    for (unsigned i = 0; i < count; ++i)
      items.push_back(std::make_unique<counted_item>([&, i] {
        order.push_back(i);
        ran.add();
      }));
    for (auto& item : items) expect(executor.post(*item), "a running executor takes the item");
    ran.wait_for(count);
    host.stop();
    bool in_order = order.size() == count;
    for (unsigned i = 0; in_order && i < count; ++i) in_order = order[i] == i;
    expect(in_order, "in the order posted");
  });
}

TEST(PlatformX2, ItemsOfEachPosterKeepTheirOrder) {
  run_on_side([](platform::host& host) {
    const auto executor = host.executor();
    const unsigned count = effort(1'000, 4);
    counter ran;
    unsigned next[2] = {0, 0};
    std::vector<std::unique_ptr<counted_item>> items;
    for (unsigned i = 0; i < 2 * count; ++i)
      items.push_back(std::make_unique<counted_item>([&, i] {
        expect(next[i / count]++ == i % count, "in the order of its poster");
        ran.add();
      }));
    team posters;
    for (unsigned t = 0; t < 2; ++t)
      posters.start([&, t] {
        for (unsigned i = 0; i < count; ++i)
          expect(executor.post(*items[t * count + i]), "a running executor takes the item");
      });
    posters.join();
    ran.wait_for(2 * count);
    host.stop();
  });
}

TEST(PlatformX2, SeveralThreadsRunEveryItemOnce) {
  run_on_side(
      [](platform::host& host) {
        const auto executor = host.executor();
        const unsigned count = effort(2'000, 6);
        counter ran;
        std::vector<std::unique_ptr<counted_item>> items;
        for (unsigned i = 0; i < count; ++i) items.push_back(std::make_unique<counted_item>([&] { ran.add(); }));
        for (auto& item : items) expect(executor.post(*item), "a running executor takes the item");
        ran.wait_for(count);
        host.stop();
        for (auto& item : items) expect(item->ran.load() == 1 && item->dropped.load() == 0, "each of them once");
      },
      3);
}

TEST(PlatformX3, ATimerRunsNotBeforeItsDeadline) {
  run_on_side([](platform::host& host) {
    const auto executor = host.executor();
    counter ran;
    const unsigned count = effort(50, 5);
    std::vector<std::unique_ptr<counted_item>> timers;
    const auto begin = host.clock().now();
    for (unsigned i = 0; i < count; ++i) {
      // Armed out of order, so that the earliest changes all the time.
      const auto deadline = begin + (i * 7 % count) * millisecond / 10;
      timers.push_back(std::make_unique<counted_item>([&, deadline] {
        expect(host.clock().now() >= deadline, "not before its deadline");
        ran.add();
      }));
      expect(executor.arm(*timers.back(), deadline), "a running executor takes the timer");
    }
    ran.wait_for(count);
    host.stop();
    for (auto& timer : timers) expect(timer->ran.load() == 1 && timer->dropped.load() == 0, "each of them once");
  });
}

TEST(PlatformX3, ADeadlineInThePastRunsSoonButNotInline) {
  run_on_side([](platform::host& host) {
    const auto executor = host.executor();
    counter ran;
    const auto armer = platform::this_thread_number();
    for (const auto deadline : {platform::time_point::min(), host.clock().now()}) {
      counted_item timer([&] {
        expect(platform::this_thread_number() != armer, "on a thread of the executor");
        ran.add();
      });
      const auto before = ran.value();
      expect(executor.arm(timer, deadline), "a running executor takes the timer");
      ran.wait_for(before + 1);
      while (timer.ran.load() == 0) platform::yield();
    }
    host.stop();
  });
}

TEST(PlatformX3, APeriodicTimerArmsItselfFromItsOwnRun) {
  run_on_side([](platform::host& host) {
    const auto executor = host.executor();
    counter ran;
    std::unique_ptr<counted_item> timer;
    auto due = host.clock().now();
    timer = std::make_unique<counted_item>([&] {
      expect(host.clock().now() >= due, "not before its deadline");
      due += millisecond / 4;
      if (ran.value() < 4) expect(executor.arm(*timer, due), "a timer may arm itself");
      ran.add();
    });
    expect(executor.arm(*timer, due), "a running executor takes the timer");
    ran.wait_for(5);
    host.stop();
    expect(timer->ran.load() == 5 && timer->dropped.load() == 0, "five runs, none lost");
  });
}

TEST(PlatformX4, ACancelledTimerIsTheCallersAgain) {
  run_on_side([](platform::host& host) {
    const auto executor = host.executor();
    counter ran;
    counted_item timer([&] { ran.add(); });
    expect(!executor.cancel(timer), "a timer that was never armed cannot be cancelled");
    expect(executor.arm(timer, platform::never), "a running executor takes the timer");
    expect(executor.cancel(timer), "nothing but cancel ends a timer without deadline");
    expect(!executor.cancel(timer), "only once");
    expect(timer.ran.load() == 0, "it did not run");
    expect(executor.arm(timer, host.clock().now() + millisecond / 4), "it may be armed again");
    ran.wait_for(1);
    expect(!executor.cancel(timer), "a timer that ran cannot be cancelled");
    host.stop();
    expect(timer.ran.load() == 1 && timer.dropped.load() == 0, "it ran once");
  });
}

TEST(PlatformX4, CancelIsExactAgainstTheDeadline) {
  run_on_side([](platform::host& host) {
    const auto executor = host.executor();
    unsigned cancelled = 0;
    const unsigned rounds = effort(300, 4);
    std::vector<std::unique_ptr<counted_item>> timers;
    std::vector<bool> was_cancelled;
    for (unsigned i = 0; i < rounds; ++i) {
      timers.push_back(std::make_unique<counted_item>());
      // Around the time that arming and cancelling take, so that both outcomes occur.
      expect(executor.arm(*timers.back(), host.clock().now() + platform::duration{i % 50 * 1'000}), "armed");
      if (i % 3 == 0) platform::yield();
      was_cancelled.push_back(executor.cancel(*timers.back()));
      cancelled += was_cancelled.back();
    }
    host.stop();
    for (unsigned i = 0; i < rounds; ++i) {
      const unsigned called = timers[i]->ran.load() + timers[i]->dropped.load();
      expect(called == (was_cancelled[i] ? 0u : 1u), "either cancelled, or run or dropped once");
    }
    expect(cancelled <= rounds, "counted");
  });
}

TEST(PlatformX4, OfSeveralCancelsAndTheRunExactlyOneWins) {
  run_on_side(
      [](platform::host& host) {
        const auto executor = host.executor();
        for (unsigned i = 0; i < effort(100, 2); ++i) {
          counted_item timer;
          platform::atomic<unsigned> wins{0};
          expect(executor.arm(timer, host.clock().now() + platform::duration{5'000}), "armed");
          team threads;
          for (unsigned t = 0; t < 2; ++t)
            threads.start([&] {
              if (executor.cancel(timer)) wins.fetch_add(1);
            });
          threads.join();
          expect(wins.load() <= 1, "at most one cancel wins");
          if (wins.load() == 0)
            while (timer.ran.load() == 0) platform::yield();
          else
            expect(timer.ran.load() == 0, "a cancelled timer does not run");
        }
        host.stop();
      },
      2);
}

TEST(PlatformX4, CancellingOneTimerLeavesTheOthersArmed) {
  run_on_side([](platform::host& host) {
    const auto executor = host.executor();
    counter ran;
    const unsigned count = effort(100, 6);
    std::vector<std::unique_ptr<counted_item>> timers;
    const auto begin = host.clock().now() + millisecond;
    for (unsigned i = 0; i < count; ++i) {
      timers.push_back(std::make_unique<counted_item>([&] { ran.add(); }));
      expect(executor.arm(*timers.back(), begin + (i * 13 % count) * platform::duration{10'000}), "armed");
    }
    unsigned cancelled = 0;
    for (unsigned i = 0; i < count; i += 2) cancelled += executor.cancel(*timers[i]);
    ran.wait_for(count - cancelled);
    host.stop();
    unsigned runs = 0;
    for (auto& timer : timers) runs += timer->ran.load() + timer->dropped.load();
    expect(runs == count - cancelled, "all but the cancelled ones ran");
  });
}

TEST(PlatformX5, AfterStopNothingRunsAndEverythingWasRunOrDropped) {
  run_on_side(
      [](platform::host& host) {
        const auto executor = host.executor();
        std::vector<std::unique_ptr<counted_item>> posted;
        std::vector<std::unique_ptr<counted_item>> armed;
        counted_item late;
        for (unsigned i = 0; i < effort(200, 4); ++i) {
          posted.push_back(std::make_unique<counted_item>());
          expect(executor.post(*posted.back()), "posted");
          armed.push_back(std::make_unique<counted_item>());
          expect(executor.arm(*armed.back(), platform::never), "armed");
        }
        host.stop();
        unsigned runs = 0;
        for (auto& item : posted) {
          runs += item->ran.load();
          expect(item->ran.load() + item->dropped.load() == 1, "a posted item ran or was dropped, once");
        }
        for (auto& timer : armed) {
          expect(timer->ran.load() == 0 && timer->dropped.load() == 1, "an armed timer was dropped");
          expect(!executor.cancel(*timer), "and is not armed any more");
        }
        expect(!executor.post(late), "a stopped executor refuses items");
        expect(!executor.arm(late, platform::time_point::min()), "and timers");
        host.stop();
        unsigned runs_later = 0;
        for (auto& item : posted) runs_later += item->ran.load();
        expect(runs_later == runs, "nothing ran after stop returned");
        expect(late.ran.load() == 0 && late.dropped.load() == 0, "what was refused is still the caller's");
      },
      2);
}

TEST(PlatformX5, PostersThatRaceWithStopLoseNothing) {
  run_on_side([](platform::host& host) {
    const auto executor = host.executor();
    const unsigned count = effort(500, 3);
    std::vector<std::unique_ptr<counted_item>> items;
    for (unsigned i = 0; i < 4 * count; ++i) items.push_back(std::make_unique<counted_item>());
    std::vector<unsigned> taken(items.size(), 0);
    counter begun;
    team posters;
    for (unsigned t = 0; t < 2; ++t)
      posters.start([&, t] {
        begun.add();
        for (unsigned i = 2 * t * count; i < 2 * (t + 1) * count; i += 2) {
          taken[i] = executor.post(*items[i]);
          taken[i + 1] = executor.arm(*items[i + 1], platform::never);
        }
      });
    begun.wait_for(1);
    host.stop();
    posters.join();
    for (std::size_t i = 0; i < items.size(); ++i)
      expect(items[i]->ran.load() + items[i]->dropped.load() == taken[i], "called once if taken, never if refused");
  });
}

TEST(PlatformX5, ADropMayPostAndCancelAndIsRefused) {
  run_on_side([](platform::host& host) {
    struct poster final : platform::timer_item {
      platform::executor executor;
      counted_item& other;
      bool refused = false;
      poster(platform::executor x, counted_item& o) : executor(x), other(o) {}
      void run() noexcept override {}
      void drop() noexcept override { refused = !executor.post(other) && !executor.arm(other, platform::never); }
    };
    counted_item other;
    poster item(host.executor(), other);
    expect(host.executor().arm(item, platform::never), "armed");
    host.stop();
    expect(item.refused, "the executor is stopped when it drops");
    expect(other.ran.load() == 0 && other.dropped.load() == 0, "what was refused is still the caller's");
  });
}

TEST(PlatformX6, TheHandleModelsAnAsioExecutorThatNeverBlocks) {
  namespace execution = boost::asio::execution;
  static_assert(execution::is_executor<platform::executor>::value);
  static_assert(std::is_convertible_v<platform::executor, boost::asio::any_io_executor>);
  static_assert(boost::asio::can_query_v<platform::executor, execution::context_t>);
  run_on_side([](platform::host& host) {
    const auto executor = host.executor();
    expect(boost::asio::query(executor, execution::blocking) == execution::blocking.never, "it never blocks");
    expect(boost::asio::require(executor, execution::blocking.never) == executor, "required or not");
    auto& context = boost::asio::query(executor, execution::context);
    expect(&context == &boost::asio::query(host.executor(), execution::context), "one context for all handles");

    counter ran;
    const auto caller = platform::this_thread_number();
    const auto body = [&] {
      expect(platform::this_thread_number() != caller, "on a thread of the executor");
      ran.add();
    };
    executor.execute(body);
    boost::asio::post(executor, body);
    const boost::asio::any_io_executor any = executor;
    any.execute(body);
    boost::asio::post(any, body);
    ran.wait_for(4);
  });
}

TEST(PlatformX6, AFunctionThatIsDroppedOrRefusedIsDestroyed) {
  run_on_side([](platform::host& host) {
    const auto executor = host.executor();
    const auto owned = std::make_shared<int>(0);
    for (unsigned i = 0; i < 3; ++i) executor.execute([owned] {});
    host.stop();
    executor.execute([owned] {});
    expect(owned.use_count() == 1, "no function is kept");
  });
}

}  // namespace holdfast::conformance
