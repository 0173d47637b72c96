// The kernel's own promises: who may run, what stops a run, and that nothing is left behind by one.
//
// How: tiny worlds with fibers over the simulated platform, driven by a strategy that replays a fixed list of
// choices and then goes on in order, so that each test names the interleaving it provokes.
#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/condition_variable.hpp>
#include <holdfast/platform/executor.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/platform/mutex.hpp>
#include <holdfast/platform/thread.hpp>

#include <sim/kernel/fiber.hpp>
#include <sim/kernel/world.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace hf = holdfast;
namespace sim = holdfast::sim;

constexpr hf::lock_class low{500, false, "low"};
constexpr hf::lock_class high{600, false, "high"};

/// Follows `choices`, then stays on the current fiber, else the first one.
class scripted final : public sim::strategy {
 public:
  explicit scripted(std::vector<std::uint32_t> choices = {}) : choices_(std::move(choices)) {}
  std::string_view name() const noexcept override { return "scripted"; }
  void begin(sim::world&) override {}
  std::uint32_t choose(sim::world& w, const sim::choice_point& point) override {
    for (std::uint32_t i = 0; i < point.enabled; ++i) labels.push_back(w.label(i));
    if (next_ < choices_.size()) return std::min(choices_[next_++], point.enabled - 1);
    return point.current != sim::choice_point::none ? point.current : 0;
  }
  std::vector<std::string> labels;

 private:
  std::vector<std::uint32_t> choices_;
  std::size_t next_ = 0;
};

/// Draws every choice.
class drawn final : public sim::strategy {
 public:
  explicit drawn(std::uint64_t seed) : stream_(seed) {}
  std::string_view name() const noexcept override { return "drawn"; }
  void begin(sim::world&) override {}
  std::uint32_t choose(sim::world&, const sim::choice_point& point) override {
    return static_cast<std::uint32_t>(stream_.below(point.enabled));
  }

 private:
  sim::random_stream stream_;
};

TEST(KernelWorld, TheFirstLockTakenAgainstTheOrderIsNamedEvenIfNothingDeadlocks) {
  // one: low -> high, ends. two: high -> low. No schedule is needed in which they meet.
  scripted strategy;
  sim::world world({}, strategy);
  sim::host& host = world.add_host("a");
  auto first = std::make_unique<hf::platform::mutex>(low);
  auto second = std::make_unique<hf::platform::mutex>(high);
  host.spawn("one", [&] {
    first->lock();
    hf::platform::yield();
    second->lock();
    second->unlock();
    first->unlock();
  });
  host.spawn("two", [&] {
    second->lock();
    hf::platform::yield();
    first->lock();
    first->unlock();
    second->unlock();
  });
  ASSERT_EQ(world.run(), sim::run_end::violated);
  EXPECT_EQ(world.violated()->invariant, "lock rank");
  EXPECT_NE(world.violated()->message.find("a/two takes low"), std::string::npos) << world.violated()->message;
}

TEST(KernelWorld, AWaiterThatNobodyWakesIsReportedAsALostWakeup) {
  scripted strategy;
  sim::world world({}, strategy);
  sim::host& host = world.add_host("a");
  hf::platform::mutex mutex(low);
  hf::platform::condition_variable condition;
  host.spawn("sleeper", [&] {
    mutex.lock();
    condition.wait(mutex);
    mutex.unlock();
  });
  ASSERT_EQ(world.run(), sim::run_end::violated);
  EXPECT_EQ(world.violated()->invariant, "lost wakeup");
  EXPECT_NE(world.violated()->message.find("a/sleeper waits in wait condition#1"), std::string::npos);
}

/// Knows what stuck worlds of its test mean, if it is told so.
class names_the_bug final : public sim::check {
 public:
  explicit names_the_bug(bool knows) : knows_(knows) {}
  std::string_view id() const noexcept override { return "T-1"; }
  std::string_view sentence() const noexcept override { return "whoever sleeps is woken"; }
  std::vector<sim::event_kind> wants() const override { return {}; }
  void begin(sim::world&) override { asked = 0; }
  void on_event(sim::world&, const sim::logged_event&) override {}
  void at_stuck(sim::world& w) override {
    ++asked;
    // Kernel scope: this allocation is none of the program's.
    const std::string sentence(100, 'x');
    if (knows_) w.violate("T-1", sentence);
  }
  unsigned asked = 0;

 private:
  bool knows_;
};

TEST(KernelWorld, ACheckThatKnowsWhyNothingCanRunIsHeardBeforeTheWorld) {
  for (const bool knows : {false, true}) {
    for (const bool stuck : {false, true}) {
      scripted strategy;
      sim::world world({}, strategy);
      names_the_bug ignorant(false), asked(knows), late(true);
      for (sim::check* c : {&ignorant, &asked}) world.attach(*c);
      if (knows) world.attach(late);
      hf::platform::mutex mutex(low);
      hf::platform::condition_variable condition;
      world.add_host("a").spawn("sleeper", [&] {
        mutex.lock();
        if (stuck) condition.wait(mutex);
        mutex.unlock();
      });
      EXPECT_EQ(world.run(), stuck ? sim::run_end::violated : sim::run_end::clean);
      EXPECT_EQ(ignorant.asked, stuck ? 1u : 0u);
      EXPECT_EQ(asked.asked, stuck ? 1u : 0u);
      EXPECT_EQ(late.asked, 0u) << "the first that knows is enough";
      if (stuck) {
        EXPECT_EQ(world.violated()->invariant, knows ? "T-1" : "lost wakeup");
      }
    }
  }
}

TEST(KernelWorld, ATimedWaitEndsAtItsDeadlineInVirtualTime) {
  scripted strategy;
  sim::world world({}, strategy);
  sim::host& host = world.add_host("a");
  hf::platform::mutex mutex(low);
  hf::platform::condition_variable condition;
  bool notified = true;
  std::int64_t woke_ns = 0;
  host.spawn("sleeper", [&] {
    mutex.lock();
    notified = condition.wait_until(mutex, hf::platform::time_point{std::chrono::milliseconds(7)});
    woke_ns = world.now();
    mutex.unlock();
  });
  ASSERT_EQ(world.run(), sim::run_end::clean) << world.violated()->message;
  EXPECT_FALSE(notified);
  EXPECT_EQ(woke_ns, 7'000'000);
}

TEST(KernelWorld, EverySeedEndsCleanWhenAProducerNotifiesUnderTheMutex) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    drawn strategy(seed);
    sim::world world({}, strategy);
    sim::host& host = world.add_host("a");
    hf::platform::mutex mutex(low);
    hf::platform::condition_variable condition;
    int produced = 0;
    int consumed = 0;
    for (int i = 0; i < 2; ++i)
      host.spawn("consumer", [&] {
        for (int n = 0; n < 3; ++n) {
          hf::scoped_lock lock(mutex);
          while (produced == 0) condition.wait(mutex);
          --produced;
          ++consumed;
        }
      });
    host.spawn("producer", [&] {
      for (int n = 0; n < 6; ++n) {
        hf::scoped_lock lock(mutex);
        ++produced;
        condition.notify_one();
      }
    });
    ASSERT_EQ(world.run(), sim::run_end::clean) << "seed " << seed << ": " << world.violated()->message;
    ASSERT_EQ(consumed, 6);
  }
}

TEST(KernelWorld, ALoadThenStoreLosesAnUpdateUnderSomeSeed) {
  unsigned lost = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    drawn strategy(seed);
    sim::world world({}, strategy);
    sim::host& host = world.add_host("a");
    hf::platform::atomic<int> counter{0};
    for (int i = 0; i < 2; ++i)
      host.spawn("adder", [&] {
        const int seen = counter.load();
        counter.store(seen + 1);
      });
    ASSERT_EQ(world.run(), sim::run_end::clean);
    if (counter.load() == 1) ++lost;
  }
  EXPECT_GT(lost, 10u);
  EXPECT_LT(lost, 90u);
}

TEST(KernelWorld, AnExecutorRunsWorkInOrderAndTimersNotBeforeTheirTime) {
  scripted strategy;
  sim::world world({}, strategy);
  sim::host& host = world.add_host("a");
  std::vector<int>* order = nullptr;
  std::vector<int> copied;
  host.spawn("main", [&] {
    std::vector<int> local;
    order = &local;
    struct note final : hf::platform::timer_item {
      std::vector<int>& out;
      int value;
      note(std::vector<int>& o, int v) : out(o), value(v) {}
      void run() noexcept override { out.push_back(value); }
      void drop() noexcept override { out.push_back(-value); }
    };
    hf::platform::host platform(host);
    note first(local, 1), second(local, 2), late(local, 3), cancelled(local, 4), never_due(local, 5);
    EXPECT_TRUE(platform.executor().arm(late, hf::platform::time_point{std::chrono::seconds(1)}));
    EXPECT_TRUE(platform.executor().arm(cancelled, hf::platform::time_point{std::chrono::milliseconds(1)}));
    EXPECT_TRUE(platform.executor().arm(never_due, hf::platform::never));
    EXPECT_TRUE(platform.executor().cancel(cancelled));
    EXPECT_FALSE(platform.executor().cancel(cancelled));
    EXPECT_TRUE(platform.executor().post(first));
    EXPECT_TRUE(platform.executor().post(second));
    hf::platform::mutex mutex(low);
    hf::platform::condition_variable condition;
    mutex.lock();
    condition.wait_until(mutex, hf::platform::time_point{std::chrono::seconds(2)});
    mutex.unlock();
    platform.stop();
    EXPECT_FALSE(platform.executor().post(first));
    sim::kernel_scope kernel;
    copied = std::vector<int>(local.begin(), local.end());
  });
  ASSERT_EQ(world.run(), sim::run_end::clean) << world.violated()->message;
  EXPECT_EQ(copied, (std::vector<int>{1, 2, 3, -5}));
}

TEST(KernelWorld, AnAllocationThatIsNeverFreedIsAHeapLeakOfItsHost) {
  scripted strategy;
  sim::world world({}, strategy);
  int* leaked = nullptr;
  world.add_host("a").spawn("main", [&] { leaked = new int(7); });
  ASSERT_EQ(world.run(), sim::run_end::violated);
  EXPECT_EQ(world.violated()->invariant, "heap leak");
  EXPECT_NE(leaked, nullptr);
}

TEST(KernelWorld, ACrashedHostIsAbandonedWithEverythingItHeld) {
  scripted strategy;
  sim::world world({}, strategy);
  sim::host& host = world.add_host("a");
  bool resumed = false;
  host.spawn("main", [&] {
    const std::vector<std::string> held(100, std::string(200, 'x'));
    hf::platform::mutex mutex(low);
    hf::scoped_lock lock(mutex);
    hf::platform::condition_variable condition;
    condition.wait(mutex);
    resumed = true;
  });
  world.at(1000, [&] { host.crash(); });
  ASSERT_EQ(world.run(), sim::run_end::clean) << world.violated()->message;
  EXPECT_FALSE(resumed);
  EXPECT_EQ(host.heap.live_blocks(), 0u);
}

TEST(KernelWorld, ADeadlineThatComesAfterTheCrashOfItsHostWakesNobody) {
  scripted strategy;
  sim::world world({}, strategy);
  sim::host& host = world.add_host("a");
  sim::host& other = world.add_host("b");
  unsigned woken = 0;
  host.spawn("waiter", [&] {
    hf::platform::mutex mutex(low);
    hf::platform::condition_variable condition;
    mutex.lock();
    condition.wait_until(mutex, hf::platform::time_point{hf::platform::duration{1'000}});
    ++woken;
    mutex.unlock();
  });
  host.spawn("sleeper", [&] {
    sim::world::current().block(sim::op_kind::sleep, 0, 2'000);
    ++woken;
  });
  // The other host outlives both deadlines.
  other.spawn("bystander", [&] { sim::world::current().block(sim::op_kind::sleep, 0, 10'000); });
  world.at(500, [&] { host.crash(); });
  EXPECT_EQ(world.run(), sim::run_end::clean) << world.violated()->message;
  EXPECT_EQ(world.now(), 10'000);
  EXPECT_EQ(woken, 0u);
}

TEST(KernelWorld, AnExceptionThatEscapesAThreadIsAViolation) {
  scripted strategy;
  sim::world world({}, strategy);
  world.add_host("a").spawn("main", [] { throw std::runtime_error("out of luck"); });
  ASSERT_EQ(world.run(), sim::run_end::violated);
  EXPECT_EQ(world.violated()->invariant, "uncaught exception");
}

TEST(KernelWorld, ASwitchInsideAHandlerKeepsEachFibersException) {
  scripted strategy({1, 0, 1, 0, 1, 0});
  sim::world world({}, strategy);
  sim::host& host = world.add_host("a");
  int right = 0;
  for (int i = 0; i < 2; ++i)
    host.spawn("thrower", [&right, i] {
      try {
        throw i;
      } catch (int) {
        hf::platform::yield();
        try {
          throw;
        } catch (int again) {
          if (again == i) ++right;
        }
      }
    });
  ASSERT_EQ(world.run(), sim::run_end::clean) << world.violated()->message;
  EXPECT_EQ(right, 2);
}

TEST(KernelWorld, TimeThatPassesWhileAFiberCouldRunIsCountedAsStalled) {
  // Entry 1 is time while "main" is runnable at its yield.
  scripted strategy({1});
  sim::world world({}, strategy);
  sim::host& host = world.add_host("a");
  world.at(5000, [] {});
  host.spawn("main", [] { hf::platform::yield(); });
  ASSERT_EQ(world.run(), sim::run_end::clean);
  EXPECT_EQ(host.stalled_ns(), 5000);
}

TEST(KernelWorld, EqualSeedsGiveEqualFingerprintsAndDifferentOnesDiffer) {
  const auto run = [](std::uint64_t seed) {
    drawn strategy(seed);
    sim::world world({}, strategy);
    sim::host& host = world.add_host("a");
    for (int i = 0; i < 3; ++i)
      host.spawn("worker", [&world, i] {
        for (int n = 0; n < 4; ++n) {
          hf::platform::yield();
          world.log(world.running_host(), sim::hardware_event::op_began, i * 10 + n);
        }
      });
    EXPECT_EQ(world.run(), sim::run_end::clean);
    return world.fingerprint();
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

TEST(KernelWorld, ObjectsAreNumberedByTheTextOfTheirKindWhereverItStands) {
  static const char latch[] = "latch";
  static const char latch_too[] = "latch";
  static const char door[] = "door";
  for (int run = 0; run < 2; ++run) {
    scripted strategy;
    sim::world world({}, strategy);
    std::vector<std::string> names;
    for (const char* kind : {latch, door, latch_too, latch, latch_too, door})
      names.push_back(world.object_name(world.new_object(kind)));
    EXPECT_EQ(names, (std::vector<std::string>{"latch#1", "door#1", "latch#2", "latch#3", "latch#4", "door#2"}));
    EXPECT_EQ(world.object_name(0), "");
    EXPECT_EQ(world.object_name(99), "");
  }
}

TEST(KernelWorld, WorkThatNeverStopsIsALivelock) {
  scripted strategy;
  sim::world_settings settings;
  settings.steps_max = 1000;
  sim::world world(settings, strategy);
  world.add_host("a").spawn("main", [] {
    for (;;) hf::platform::yield();
  });
  ASSERT_EQ(world.run(), sim::run_end::violated);
  EXPECT_EQ(world.violated()->invariant, "livelock");
}

TEST(KernelWorld, AFiberThatSpinsIsNamedWithWhatItRepeats) {
  scripted strategy;
  sim::world_settings settings;
  settings.steps_max = 1000;
  sim::world world(settings, strategy);
  sim::host& host = world.add_host("a");
  hf::platform::atomic<bool> told{false};
  host.spawn("bystander", [] { sim::world::current().block(sim::op_kind::sleep, 0, 1'000); });
  host.spawn("spinner", [&] {
    while (!told.load()) {
    }
  });
  ASSERT_EQ(world.run(), sim::run_end::violated);
  EXPECT_EQ(world.violated()->invariant, "livelock");
  EXPECT_NE(world.violated()->message.find("a/spinner made 1000, and repeats load atomic#1"), std::string::npos)
      << world.violated()->message;
}

TEST(KernelWorld, ATimerThatReArmsItselfAtOnceIsALivelockOfTime) {
  scripted strategy;
  sim::world_settings settings;
  settings.steps_max = 1000;
  sim::world world(settings, strategy);
  world.add_host("a").spawn("bystander", [] { sim::world::current().block(sim::op_kind::sleep, 0, 1'000); });
  std::function<void()> again = [&] { world.at(world.now(), again); };
  world.at(0, again);
  ASSERT_EQ(world.run(), sim::run_end::violated);
  EXPECT_EQ(world.violated()->invariant, "livelock");
  EXPECT_NE(world.violated()->message.find("only time passes"), std::string::npos) << world.violated()->message;
}

std::uint64_t depth_of(std::uint64_t n, const volatile char* below) {
  volatile char room[1024];
  room[0] = static_cast<char>(n);
  if (below != nullptr && n != 0) room[1] = below[0];
  return n == 0 ? 0 : depth_of(n - 1, room) + static_cast<std::uint64_t>(room[0] == static_cast<char>(n));
}

TEST(KernelWorld, AFiberThatRunsOutOfItsStackIsAViolationThatNamesIt) {
  // Twice: the fiber's stack is used again, and the handler is as it was.
  for (int i = 0; i < 2; ++i) {
    scripted strategy;
    sim::world world({}, strategy);
    sim::host& host = world.add_host("a");
    std::uint64_t deep = 0;
    host.spawn("shallow", [&] { deep += depth_of(20, nullptr); });
    host.spawn("recursive", [&] {
      hf::platform::yield();
      deep += depth_of(std::uint64_t{1} << 40, nullptr);
    });
    ASSERT_EQ(world.run(), sim::run_end::violated);
    EXPECT_EQ(world.violated()->invariant, "stack overflow");
    EXPECT_NE(world.violated()->message.find("a/recursive ran out of its stack"), std::string::npos);
    EXPECT_NE(world.violated()->message.find("last operation was yield"), std::string::npos)
        << world.violated()->message;
    EXPECT_EQ(deep, 20u);
  }
}

TEST(KernelWorld, WhoeverWaitsForEverGivesUpOnlyIfAFaultExcusesIt) {
  for (const bool excused : {false, true}) {
    scripted strategy;
    sim::world world({}, strategy);
    sim::fiber* waiter = nullptr;
    world.add_host("a").spawn("waiter", [&] {
      waiter = sim::world::current().running();
      sim::world::current().block(sim::op_kind::sleep, 0, INT64_MAX);
    });
    std::vector<std::string> order;
    world.at_patience(5'000, [&] {
      order.push_back("patience");
      world.wake(*waiter);
    });
    world.at_patience(9'000, [&] { order.push_back("nobody is left to lose it"); });
    world.at(100, [&] {
      order.push_back("event");
      if (excused) world.excuse_waiting();
    });
    const bool clean = world.run() == sim::run_end::clean;
    EXPECT_EQ(clean, excused);
    if (!excused) {
      EXPECT_EQ(world.violated()->invariant, "lost wakeup");
      EXPECT_EQ(order, (std::vector<std::string>{"event"}));
      continue;
    }
    EXPECT_EQ(order, (std::vector<std::string>{"event", "patience"}));
    EXPECT_EQ(world.now(), 5'000);
  }
}

TEST(KernelWorld, PatienceThatTimePassesEndsBeforeWhatComesLater) {
  scripted strategy;
  sim::world world({}, strategy);
  std::vector<std::int64_t> seen;
  seen.reserve(2);  // what a fiber allocates is its host's
  world.add_host("a").spawn("sleeper", [&] {
    sim::world::current().excuse_waiting();
    sim::world::current().block(sim::op_kind::sleep, 0, 8'000);
    seen.push_back(sim::world::current().now());
  });
  world.at_patience(5'000, [&] { seen.push_back(world.now()); });
  EXPECT_EQ(world.run(), sim::run_end::clean);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{5'000, 8'000}));
}

TEST(KernelWorld, WhatIsOwedAndLateIsAViolationOfProgressThatNamesWho) {
  for (const std::int64_t within_ns : {2'000, 50'000}) {
    scripted strategy;
    sim::world world({}, strategy);
    world.add_host("a").spawn("debtor", [&] {
      sim::world& w = sim::world::current();
      w.block(sim::op_kind::sleep, 0, 1'000);
      w.begin_calm();
      w.expect_end_within(within_ns);
      for (int i = 1; i <= 10; ++i) w.block(sim::op_kind::sleep, 0, 1'000 + 1'000 * i);
    });
    const bool clean = world.run() == sim::run_end::clean;
    EXPECT_EQ(clean, within_ns == 50'000);
    if (clean) continue;
    EXPECT_EQ(world.violated()->invariant, "progress");
    EXPECT_EQ(world.violated()->message,
              "since 1000 ns there was no more trouble, and 2000 ns later have not ended: a/debtor waits in sleep ");
  }
}

TEST(KernelWorld, AHostThatIsStartedAgainIsWhatItWasAndEventsOfItsEarlierLifeDoNothing) {
  scripted strategy;
  sim::world world({}, strategy);
  sim::host& host = world.add_host("a");
  std::vector<std::uint32_t> seen;
  seen.reserve(8);  // what a fiber allocates is its host's
  host.on_restart([&] { host.spawn("main", [&] { seen.push_back(host.life()); }); });
  host.spawn("main", [&] {
    seen.push_back(host.life());
    host.at(3'000, [&] { seen.push_back(98); });
    sim::world::current().block(sim::op_kind::sleep, 0, 10'000);
    seen.push_back(99);
  });
  world.at(1'000, [&] {
    host.pause();
    host.crash();
  });
  world.at(2'000, [&] { host.restart(); });
  EXPECT_EQ(world.run(), sim::run_end::clean) << world.violated()->message;
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(world.now(), 3'000);
}

TEST(KernelWorld, AQuietPointSeesWhatALockGuardsEachTimeItIsReleased) {
  scripted strategy;
  sim::world world({}, strategy);
  sim::host& host = world.add_host("a");
  hf::platform::mutex mutex(low);
  hf::platform::mutex other(high);
  int guarded = 0;
  std::vector<int> seen;
  world.at_quiet_point(host, low.rank, [&] {
    // Observer mode: taking the lock that was just released neither schedules nor fails.
    hf::scoped_lock lock(mutex);
    seen.push_back(guarded);
  });
  host.spawn("main", [&] {
    for (int i = 0; i < 2; ++i) {
      hf::scoped_lock lock(mutex);
      ++guarded;
    }
    hf::scoped_lock lock(other);
  });
  ASSERT_EQ(world.run(), sim::run_end::clean) << world.violated()->message;
  EXPECT_EQ(seen, (std::vector<int>{1, 2}));
}

TEST(KernelWorld, ACheckThatTakesAHeldLockIsReported) {
  scripted strategy;
  sim::world world({}, strategy);
  sim::host& host = world.add_host("a");
  hf::platform::mutex mutex(low);
  hf::platform::mutex other(high);
  world.at_quiet_point(host, high.rank, [&] { hf::scoped_lock lock(mutex); });
  host.spawn("main", [&] {
    hf::scoped_lock outer(mutex);
    hf::scoped_lock inner(other);
  });
  ASSERT_EQ(world.run(), sim::run_end::violated);
  EXPECT_EQ(world.violated()->invariant, "platform misuse");
}

}  // namespace
