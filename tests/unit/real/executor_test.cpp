// The executor under many real threads: every item is run, dropped or cancelled exactly once, whoever races with whom;
// and the heap keeps the order of deadlines whatever is taken out of it.
#include <holdfast/platform/executor.hpp>

#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/host.hpp>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast {
namespace {

// xorshift64*: tests repeat.
class numbers {
 public:
  explicit numbers(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint64_t below(std::uint64_t bound) {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return (state_ * 0x2545f4914f6cdd1du >> 32) % bound;
  }

 private:
  std::uint64_t state_;
};

struct counted_timer final : platform::timer_item {
  // Who sees that it ran may destroy it.
  void run() noexcept override { ran.fetch_add(1); }
  void drop() noexcept override { dropped.fetch_add(1); }
  std::atomic<unsigned> ran{0};
  std::atomic<unsigned> dropped{0};
  std::atomic<unsigned> cancelled{0};
};

// Keeps a thread of a pool busy until it is opened.
class plug final : public work_item {
 public:
  void run() noexcept override {
    std::unique_lock lock(mutex_);
    running_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void drop() noexcept override {}
  void wait_until_running() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_; });
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ = false;
  bool open_ = false;
};

template <class Body>
void on_threads(unsigned count, Body body) {
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < count; ++t) threads.emplace_back([t, &body] { body(t); });
}

TEST(RealExecutor, ItemsPostedByManyThreadsAreRunOnceEach) {
  constexpr unsigned posters = 8, each = 5'000;
  std::vector<counted_timer> items(posters * each);
  platform::executor_pool pool(4);
  const auto executor = pool.get();
  std::atomic<unsigned> refused{0};
  on_threads(posters, [&](unsigned t) {
    for (unsigned i = 0; i < each; ++i)
      if (!executor.post(items[t * each + i])) refused.fetch_add(1);
  });
  while (std::ranges::any_of(items, [](const auto& item) { return item.ran.load() == 0; })) std::this_thread::yield();
  pool.stop();
  EXPECT_EQ(refused.load(), 0u);
  EXPECT_TRUE(std::ranges::all_of(items, [](const auto& item) { return item.ran == 1 && item.dropped == 0; }));
}

TEST(RealExecutor, AHundredThousandTimersArmedAndCancelledAtOnceRunOrAreCancelledExactlyOnce) {
  constexpr unsigned threads = 4, each = 25'000;
  std::vector<counted_timer> timers(threads * each);
  platform::executor_pool pool(2);
  const auto executor = pool.get();
  const platform::clock clock;
  on_threads(threads, [&](unsigned t) {
    numbers random(t + 1);
    for (unsigned i = 0; i < each; ++i) {
      auto& timer = timers[t * each + i];
      // From "already due" to "long after this test", so that cancels hit timers in every state.
      const auto delay = platform::duration(
          static_cast<std::int64_t>(random.below(4) == 0 ? 3'600'000'000'000 : random.below(2'000'000)));
      ASSERT_TRUE(executor.arm(timer, clock.now() + delay));
      if (random.below(3) == 0) {
        auto& victim = timers[t * each + random.below(i + 1)];
        if (executor.cancel(victim)) victim.cancelled.fetch_add(1);
      }
      // And timers of others, armed or not, by threads that race for them.
      if (random.below(4) == 0) {
        auto& foreign = timers[random.below(threads * each)];
        if (executor.cancel(foreign)) foreign.cancelled.fetch_add(1);
      }
    }
  });
  pool.stop();
  unsigned ran = 0, dropped = 0, cancelled = 0;
  for (const auto& timer : timers) {
    ran += timer.ran;
    dropped += timer.dropped;
    cancelled += timer.cancelled;
    ASSERT_EQ(timer.ran + timer.dropped + timer.cancelled, 1u);
  }
  EXPECT_GT(ran, 0u);
  EXPECT_GT(dropped, 0u);
  EXPECT_GT(cancelled, 0u);
}

TEST(RealExecutor, TimersRunInTheOrderOfTheirDeadlinesWhateverIsTakenOut) {
  struct noted final : platform::timer_item {
    std::vector<unsigned>* order = nullptr;
    unsigned number = 0;
    void run() noexcept override { order->push_back(number); }
    void drop() noexcept override {}
  };
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    numbers random(seed);
    const auto count = static_cast<unsigned>(1 + random.below(200));
    std::vector<unsigned> order;
    order.reserve(count);
    std::vector<noted> timers(count);
    // Deadlines of the past: all due at once when the only thread is free again.
    platform::executor_pool pool(1);
    plug busy;
    ASSERT_TRUE(pool.get().post(busy));
    busy.wait_until_running();
    std::vector<std::pair<std::int64_t, unsigned>> expected;
    std::vector<unsigned> armed;
    for (unsigned i = 0; i < count; ++i) {
      timers[i].order = &order;
      timers[i].number = i;
      const auto deadline = static_cast<std::int64_t>(random.below(count / 2 + 1));
      ASSERT_TRUE(pool.get().arm(timers[i], platform::time_point(platform::duration(deadline))));
      expected.emplace_back(deadline, i);
      if (random.below(3) == 0) {
        const auto victim = random.below(expected.size());
        ASSERT_TRUE(pool.get().cancel(timers[expected[victim].second]));
        expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(victim));
      }
    }
    std::ranges::sort(expected);  // deadline, then the order of arming
    counted_timer last;
    // Later than all of them, and due too: when it has run they all have.
    ASSERT_TRUE(pool.get().arm(last, platform::time_point(platform::duration(count))));
    busy.open();
    while (last.ran == 0) std::this_thread::yield();
    pool.stop();
    std::vector<unsigned> wanted;
    for (const auto& [deadline, number] : expected) wanted.push_back(number);
    EXPECT_EQ(order, wanted) << "seed " << seed;
  }
}

TEST(RealExecutor, ATimerIsNotLateOnAnIdlePool) {
  platform::executor_pool pool(3);
  const platform::clock clock;
  struct timed final : platform::timer_item {
    std::atomic<std::int64_t> at{0};
    void run() noexcept override { at = platform::clock().now().time_since_epoch().count(); }
    void drop() noexcept override {}
  };
  std::vector<timed> timers(20);
  const auto begin = clock.now();
  // Each new one is earlier than all before, so the thread that keeps time has to be told every time.
  for (unsigned i = 0; i < timers.size(); ++i)
    ASSERT_TRUE(pool.get().arm(timers[i], begin + platform::duration((20 - i) * 1'000'000)));
  for (auto& timer : timers)
    while (timer.at == 0) std::this_thread::yield();
  for (unsigned i = 0; i < timers.size(); ++i) {
    const auto deadline = begin + platform::duration((20 - i) * 1'000'000);
    EXPECT_GE(timers[i].at.load(), deadline.time_since_epoch().count());
    EXPECT_LT(timers[i].at.load(), (deadline + std::chrono::seconds(2)).time_since_epoch().count());
  }
}

TEST(RealExecutor, WorkIsNotHeldUpByTheThreadThatKeepsTime) {
  // Two threads: one keeps time for a far timer, one works. While the worker is busy, the timekeeper takes the work;
  // while both are busy, a timer that becomes due waits for the first that is free.
  platform::executor_pool pool(2);
  counted_timer far;
  ASSERT_TRUE(pool.get().arm(far, platform::never));
  plug first, second;
  ASSERT_TRUE(pool.get().post(first));
  ASSERT_TRUE(pool.get().post(second));
  first.wait_until_running();
  second.wait_until_running();
  counted_timer due;
  ASSERT_TRUE(pool.get().arm(due, platform::time_point::min()));
  first.open();
  while (due.ran == 0) std::this_thread::yield();
  counted_timer soon;
  ASSERT_TRUE(pool.get().arm(soon, platform::clock().now() + std::chrono::milliseconds(1)));
  while (soon.ran == 0) std::this_thread::yield();
  second.open();
  pool.stop();
  EXPECT_EQ(far.dropped, 1u);
}

// Ends when another timer or item has run: only a second thread can help it.
struct dependent final : platform::timer_item {
  explicit dependent(const counted_timer& other) : awaited(other) {}
  void run() noexcept override {
    while (awaited.ran == 0) std::this_thread::yield();
    done = true;
  }
  void drop() noexcept override {}
  const counted_timer& awaited;
  std::atomic<bool> done{false};
};

TEST(RealExecutor, ATimerThatTakesLongDoesNotHoldUpTheNextOne) {
  platform::executor_pool pool(3);
  for (unsigned round = 0; round < 20; ++round) {
    counted_timer second;
    dependent first(second);
    const auto begin = platform::clock().now();
    ASSERT_TRUE(pool.get().arm(second, begin + std::chrono::milliseconds(2)));
    ASSERT_TRUE(pool.get().arm(first, begin + std::chrono::milliseconds(1)));
    while (!first.done) std::this_thread::yield();
  }
}

TEST(RealExecutor, OfTwoItemsPostedTogetherEachGetsAThreadEvenIfOneOfThemKeepsTime) {
  platform::executor_pool pool(2);
  counted_timer far;
  ASSERT_TRUE(pool.get().arm(far, platform::never));
  for (unsigned round = 0; round < 2'000; ++round) {
    counted_timer second;
    dependent first(second);
    ASSERT_TRUE(pool.get().post(first));
    ASSERT_TRUE(pool.get().post(second));
    while (!first.done) std::this_thread::yield();
  }
  pool.stop();
  EXPECT_EQ(far.dropped, 1u);
}

// Whoever is woken for the first passes on the others: nobody else is notified while he is on his way.
TEST(RealExecutor, ItemsPostedTogetherEachGetAThreadHoweverManySleep) {
  constexpr std::size_t threads = 4;
  // Until the threads are gone: who opens a plug does not know when its thread has left it.
  std::vector<std::vector<std::unique_ptr<plug>>> kept;
  platform::executor_pool pool(threads);
  for (unsigned round = 0; round < 200; ++round) {
    std::vector<std::unique_ptr<plug>> plugs;
    for (std::size_t i = 0; i < threads; ++i) plugs.push_back(std::make_unique<plug>());
    for (const auto& one : plugs) ASSERT_TRUE(pool.get().post(*one));
    for (const auto& one : plugs) one->wait_until_running();
    for (const auto& one : plugs) one->open();
    kept.push_back(std::move(plugs));
  }
  pool.stop();
  EXPECT_EQ(kept.size(), 200u);
}

TEST(RealExecutor, SeveralThreadsMayStopAndEachReturnsWhenAllIsDone) {
  for (unsigned round = 0; round < 50; ++round) {
    platform::executor_pool pool(2);
    std::vector<counted_timer> timers(32);
    for (auto& timer : timers) ASSERT_TRUE(pool.get().arm(timer, platform::never));
    on_threads(3, [&](unsigned) {
      pool.stop();
      for (const auto& timer : timers) ASSERT_EQ(timer.dropped, 1u);
    });
  }
}

TEST(RealExecutorDeathTest, StoppingFromAThreadOfThePoolStopsTheProcessWithASentence) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        platform::executor_pool pool(1);
        pool.get().execute([&] { pool.stop(); });
        for (;;) ::pause();
      },
      "stopped by one of its own threads");
}

TEST(RealExecutor, AForkedChildDestroysTheHostWithoutItsThreads) {
  auto host = std::make_unique<platform::host>(2);
  counted_timer timer;
  ASSERT_TRUE(host->executor().arm(timer, platform::never));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    host->stop();
    host.reset();
    ::_exit(timer.dropped == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  host.reset();
  EXPECT_EQ(timer.dropped, 1u);
}

}  // namespace
}  // namespace holdfast
