// Strategy pct: its guarantee, its fairness, and that a run of it can be made again.
//
// How: bugs of a known depth, made of a known number of choices among a known number of threads, are hunted many times;
// the share of runs that find them must not be below 1/(n·k^(d-1)). Programs that would hang under mere priorities
// must end. What a run recorded must repeat it.
#include <sim/kernel/strategies/make_strategy.hpp>
#include <sim/kernel/strategies/pct.hpp>
#include <sim/kernel/strategies/replay.hpp>
#include <sim/kernel/world.hpp>

#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/thread.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace holdfast::sim;
using holdfast::platform::atomic;

world_settings seeded(std::uint64_t seed) {
  world_settings out;
  out.seed = seed;
  return out;
}

// Two threads take numbers, the first one first, in turns: 0, 1, ... depth. Only then the bug shows, so it needs
// `depth` orderings. Each thread does `padding` other steps before, and `bystanders` threads do as many.
struct ladder {
  unsigned depth;
  unsigned padding;
  unsigned bystanders;
  atomic<unsigned> turn{0}, other{0};
  unsigned in_order = 0;

  void pad() {
    for (unsigned i = 0; i < padding; ++i) other.fetch_add(1);
  }
  void build(world& w) {
    turn.store(0);
    in_order = 0;
    host& a = w.add_host("a");
    for (unsigned self = 0; self < 2; ++self)
      a.spawn(self == 0 ? "even" : "odd", [this, self, &w] {
        pad();
        for (unsigned step = self; step <= depth; step += 2)
          if (turn.fetch_add(1) == step && ++in_order == depth + 1) w.violate("ladder", "every step in order");
      });
    for (unsigned i = 0; i < bystanders; ++i) a.spawn("bystander", [this] { pad(); });
  }
};

TEST(PctStrategy, FindsABugOfDepthDAtLeastAsOftenAsItPromises) {
  for (const unsigned depth : {1u, 2u, 3u}) {
    for (const unsigned bystanders : {0u, 2u}) {
      ladder bug{depth, 2, bystanders};
      const std::uint32_t length = depth + 1 + (2 + bystanders) * (2 + 1);  // with a start for each thread
      const double threads = 2.0 + bystanders;
      const double promised = 1 / (threads * std::pow(length, depth - 1));
      // Enough runs for two hundred finds, so that chance stays within four deviations of what is promised.
      const auto runs = static_cast<std::uint64_t>(200 / promised);
      pct_strategy strategy(depth, length);
      std::uint64_t found = 0;
      for (std::uint64_t seed = 1; seed <= runs; ++seed) {
        world w(seeded(seed), strategy);
        bug.build(w);
        found += w.run() == run_end::violated;
        ASSERT_LE(w.choice_count(), length) << "the length is no bound of this program";
      }
      std::printf("depth %u, %g threads, %u choices: found by %.4f of %llu runs, promised %.4f\n", depth, threads,
                  length, static_cast<double>(found) / static_cast<double>(runs), static_cast<unsigned long long>(runs),
                  promised);
      EXPECT_GE(static_cast<double>(found), 200 - 4 * std::sqrt(200))
          << "depth " << depth << ", bystanders " << bystanders;
    }
  }
}

TEST(PctStrategy, TimeIsAThreadWithAPriorityOfItsOwn) {
  // Depth 2: the event must come between two loads of a fiber that could go on. Threads: the fiber and time.
  atomic<int> x{0};
  constexpr std::uint32_t length = 12;
  pct_strategy strategy(2, length);
  constexpr std::uint64_t runs = 200 * 2 * length;
  std::uint64_t found = 0;
  for (std::uint64_t seed = 1; seed <= runs; ++seed) {
    world w(seeded(seed), strategy);
    x.store(0);
    w.at(100, [&x] { x.store(1); });
    w.add_host("a").spawn("loads", [&x, &w] {
      for (int i = 0; i < 8; ++i) x.load();
      const int first = x.load();
      const int second = x.load();
      if (first != second) w.violate("between", "time passed between two loads");
    });
    found += w.run() == run_end::violated;
    ASSERT_LE(w.choice_count(), length);
  }
  EXPECT_GE(static_cast<double>(found), 200 - 4 * std::sqrt(200));
}

TEST(PctStrategy, TheSameSeedAndTextMakeTheSameChoicesAndARecordRepeatsThem) {
  struct outcome {
    std::vector<std::uint8_t> choices;
    std::string fingerprint, name;
    bool operator==(const outcome&) const = default;
  };
  const auto run = [](strategy& chooser, std::uint64_t seed) {
    world w(seeded(seed), chooser);
    host& a = w.add_host("a");
    for (int i = 0; i < 3; ++i)
      a.spawn("worker", [&w, i] {
        for (int n = 0; n < 5; ++n) {
          w.point(op_kind::driver_call);
          w.log(w.running_host(), hardware_event::op_began, i * 10 + n);
          if (n == 2) w.at(w.now() + 50, [&w, i] { w.log(nullptr, hardware_event::op_began, 100 + i); });
        }
      });
    EXPECT_EQ(w.run(), run_end::clean);
    return outcome{w.choices(), w.fingerprint(), std::string(chooser.name())};
  };
  unsigned unlike = 0;
  pct_strategy kept(3, std::nullopt);
  outcome before;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    // What was made before with the same object makes no difference.
    const outcome first = run(kept, seed);
    const auto named = make_strategy(first.name);
    ASSERT_TRUE(named.has_value()) << named.error();
    EXPECT_EQ(run(**named, seed), first);
    index_replay_strategy replay(first.choices, after_mismatch::stop);
    EXPECT_EQ(run(replay, seed).fingerprint, first.fingerprint);
    unlike += first.choices != before.choices;
    before = first;
  }
  EXPECT_GE(unlike, 190u);
}

TEST(PctStrategy, WhoWaitsForOthersInALoopGivesWay) {
  for (const bool yields : {true, false}) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
      pct_strategy strategy(1 + seed % 3, 100);
      world_settings settings = seeded(seed);
      settings.steps_max = 5000;
      world w(settings, strategy);
      atomic<int> flag{0}, seen{0};
      host& a = w.add_host("a");
      for (int i = 0; i < 2; ++i)
        a.spawn("spins", [&flag, &seen, yields] {
          while (flag.load() == 0)
            if (yields) holdfast::platform::yield();
          seen.fetch_add(1);
        });
      // One goes on when the other does, and that when time has passed.
      a.spawn("sets", [&flag, &w] {
        w.block(op_kind::sleep, 0, 1000);
        flag.store(1);
      });
      ASSERT_EQ(w.run(), run_end::clean) << "seed " << seed << ": " << w.violated()->message;
      EXPECT_EQ(seen.load(), 2);
    }
  }
}

TEST(PctStrategy, EventsWithoutEndDoNotKeepFibersFromRunning) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    pct_strategy strategy(2, 50);
    world_settings settings = seeded(seed);
    settings.steps_max = 5000;
    world w(settings, strategy);
    bool stopped = false;
    std::function<void()> tick = [&] {
      if (!stopped) w.at(w.now() + 10, [&tick] { tick(); });
    };
    w.at(10, [&tick] { tick(); });
    w.add_host("a").spawn("stops", [&stopped] {
      for (int i = 0; i < 5; ++i) holdfast::platform::yield();
      stopped = true;
    });
    ASSERT_EQ(w.run(), run_end::clean) << "seed " << seed << ": " << w.violated()->message;
  }
}

TEST(PctStrategy, TimeStandsStillInTheCalm) {
  pct_strategy strategy(3, 10);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    world w(seeded(seed), strategy);
    strategy.begin(w);
    host& a = w.add_host("a");
    for (int i = 0; i < 2; ++i) a.spawn("app", [] {});
    for (int i = 0; i < 100; ++i) EXPECT_LT(strategy.choose(w, {3, 2, choice_point::none, true}), 2u);
  }
}

}  // namespace
