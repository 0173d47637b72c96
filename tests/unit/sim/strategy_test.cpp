// Strategies: the generator behind them, their weights, and what they find.
//
// How: the random one is asked for many prefixes of choices and must come near the number of distinct ones that chance
// would give (a weak generator made a known tool blind to bugs that need nine choices); then three classic bugs, each a
// world of a few fibers, must fall within a number of schedules, for a hundred seeds each.
#include <sim/kernel/strategies/fifo.hpp>
#include <sim/kernel/strategies/make_strategy.hpp>
#include <sim/kernel/strategies/random.hpp>
#include <sim/kernel/strategies/replay.hpp>
#include <sim/kernel/world.hpp>

#include <holdfast/platform/atomic.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <set>
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

TEST(RandomStrategy, NearlyAsManyDistinctPrefixesAsChanceGives) {
  for (const std::uint32_t fibers : {2u, 3u, 4u, 8u}) {
    random_strategy strategy(random_weights{1000 / fibers, 0});
    constexpr int samples = 200'000;
    std::set<std::string> seen;
    for (int sample = 0; sample < samples; ++sample) {
      world w(seeded(static_cast<std::uint64_t>(sample)), strategy);
      strategy.begin(w);
      std::string prefix;
      std::uint32_t current = 0;
      for (int i = 0; i < 24; ++i) {
        current = strategy.choose(w, {fibers, fibers, current, false});
        ASSERT_LT(current, fibers);
        prefix += static_cast<char>('0' + current);
      }
      seen.insert(prefix);
    }
    const double all = std::pow(fibers, 24);
    const double expected = all * -std::expm1(samples * std::log1p(-1.0 / all));
    EXPECT_GE(static_cast<double>(seen.size()), 0.99 * expected) << fibers << " fibers";
  }
}

TEST(RandomStrategy, KeepsToItsWeights) {
  random_strategy strategy(random_weights{700, 50});
  world w(seeded(7), strategy);
  strategy.begin(w);
  constexpr int samples = 100'000;
  int stayed = 0, time = 0, others[3] = {};
  for (int i = 0; i < samples; ++i) {
    const std::uint32_t chosen = strategy.choose(w, {4, 3, 1, false});
    ASSERT_LT(chosen, 4u);
    stayed += chosen == 1;
    time += chosen == 3;
    if (chosen < 3) ++others[chosen];
  }
  EXPECT_NEAR(time, samples * 0.05, samples * 0.005);
  EXPECT_NEAR(stayed, samples * 0.95 * 0.7, samples * 0.01);
  EXPECT_NEAR(others[0], others[2], samples * 0.01);
}

TEST(RandomStrategy, LeavesTimeAloneInTheCalm) {
  random_strategy strategy(random_weights{0, 1000});
  world w(seeded(1), strategy);
  strategy.begin(w);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(strategy.choose(w, {3, 2, 0, true}), 2u);
}

TEST(RandomStrategy, GivenTheWeightsItDrewRepeatsTheRun) {
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    random_strategy drawn(std::nullopt);
    world w(seeded(seed), drawn);
    drawn.begin(w);
    const auto given = make_strategy(std::string(drawn.name()));
    ASSERT_TRUE(given.has_value()) << given.error();
    (*given)->begin(w);
    EXPECT_EQ((*given)->name(), drawn.name());
    for (int i = 0; i < 200; ++i) {
      const choice_point at{4, 3, static_cast<std::uint32_t>(i % 3), false};
      ASSERT_EQ((*given)->choose(w, at), drawn.choose(w, at));
    }
  }
}

TEST(MakeStrategy, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"", "luck", "fifo:", "fifo:1", "random:", "random:stay", "random:stay=", "random:stay=-1",
                           "random:stay=1001", "random:go=1", "random:stay=1,,time=1", "random:stay=1,", "exhaustive",
                           "exhaustive:", "exhaustive:65", "exhaustive:x", "replay"}) {
    const auto made = make_strategy(text);
    EXPECT_FALSE(made.has_value()) << text;
    EXPECT_NE(made.has_value() ? "" : made.error(), "") << text;
  }
}

TEST(IndexReplay, RepeatsARunAndSaysSoIfItCannot) {
  const auto run = [](strategy& chooser, int fibers) {
    world w(seeded(3), chooser);
    host& a = w.add_host("a");
    for (int i = 0; i < fibers; ++i) a.spawn("app", [&w] { w.point(op_kind::yield); });
    w.run();
    return std::pair(w.choices(), w.violated());
  };
  random_strategy random(std::nullopt);
  const auto [first, clean] = run(random, 5);
  EXPECT_FALSE(clean);
  index_replay_strategy again(first, after_mismatch::stop);
  EXPECT_EQ(run(again, 5).first, first);
  EXPECT_TRUE(again.exhausted());
  index_replay_strategy other(first, after_mismatch::stop);
  const auto [ignored, violated] = run(other, 7);
  ASSERT_TRUE(violated);
  EXPECT_EQ(violated->invariant, divergence);
  // A beginning alone: the rest is not forced.
  const std::vector<std::uint8_t> beginning(first.begin(), first.begin() + 2);
  index_replay_strategy partly(beginning, after_mismatch::fifo);
  EXPECT_FALSE(run(partly, 5).second);
}

TEST(IndexReplay, ReadsIndicesOfEverySize) {
  std::vector<std::uint8_t> record;
  const std::uint32_t indices[] = {0, 127, 128, 16'383, 16'384, 0xfffffffe};
  for (const std::uint32_t index : indices) append_index(record, index);
  index_replay_strategy replay(record, after_mismatch::stop);
  world w(seeded(1), replay);
  for (const std::uint32_t index : indices) EXPECT_EQ(replay.choose(w, {0xffffffff, 0xffffffff, 0, false}), index);
}

// Finding power ------------------------------------------------------------------------------------------------------

// Schedules until `build` made a world that violates, at most `limit`, for each of a hundred seeds; sorted.
std::vector<int> schedules_to_find(const std::function<void(world&)>& build, int limit) {
  std::vector<int> out;
  random_strategy strategy(std::nullopt);
  for (std::uint64_t series = 0; series < 100; ++series) {
    int made = 0;
    bool found = false;
    while (!found && made < limit) {
      world w(seeded(series * 1'000'000 + static_cast<std::uint64_t>(made)), strategy);
      build(w);
      found = w.run() == run_end::violated;
      ++made;
    }
    EXPECT_TRUE(found) << "series " << series;
    out.push_back(made);
  }
  std::ranges::sort(out);
  return out;
}

int median(const std::vector<int>& sorted) { return sorted[sorted.size() / 2]; }

TEST(FindingPower, AnUpdateIsLostWithinAFewSchedules) {
  struct {
    atomic<int> x{0};
    int left = 0;
  } s;
  const auto found = schedules_to_find(
      [&s](world& w) {
        s.x.store(0);
        s.left = 2;
        host& a = w.add_host("a");
        for (const char* name : {"one", "two"}) {
          a.spawn(name, [&s, &w] {
            const int seen = s.x.load();
            s.x.store(seen + 1);
            if (--s.left == 0 && s.x.load() != 2) w.violate("LOST-2", "an update was lost");
          });
        }
      },
      10'000);
  EXPECT_LE(median(found), 10);
}

TEST(FindingPower, ANeedleBehindTwentyStepsIsFound) {
  struct {
    atomic<int> x{0}, y{0};
  } s;
  const auto found = schedules_to_find(
      [&s](world& w) {
        s.x.store(0);
        s.y.store(0);
        host& a = w.add_host("a");
        a.spawn("adds", [&s, &w] {
          for (int i = 0; i < 20; ++i) s.x.fetch_add(1);
          const int first = s.y.load();
          const int second = s.y.load();
          if (first != second) w.violate("NEEDLE-20", "y changed between two loads");
        });
        a.spawn("stores", [&s] { s.y.store(1); });
      },
      10'000);
  EXPECT_LE(median(found), 200);
}

TEST(FindingPower, AStackWithoutTagsLosesToABA) {
  // Nodes 0, 1, 2; head 0 -> 1 -> 2. Thread 0 pops twice; thread 1 pops twice and pushes its first back.
  struct {
    atomic<int> head{0};
    atomic<int> next[3];
    int owners[3] = {};

    int pop() {
      for (;;) {
        int top = head.load();
        if (top < 0) return -1;
        const int below = next[top].load();
        if (head.compare_exchange_strong(top, below)) return top;
      }
    }
    void push(int node) {
      for (;;) {
        int top = head.load();
        next[node].store(top);
        if (head.compare_exchange_strong(top, node)) return;
      }
    }
  } s;
  const auto found = schedules_to_find(
      [&s](world& w) {
        s.head.store(0);
        for (int i = 0; i < 3; ++i) {
          s.next[i].store(i == 2 ? -1 : i + 1);
          s.owners[i] = 0;
        }
        const auto take = [&s, &w](int node) {
          if (node >= 0 && ++s.owners[node] == 2) w.violate("ABA", "a node was popped by two owners");
          return node;
        };
        host& a = w.add_host("a");
        a.spawn("pops", [&s, take] {
          take(s.pop());
          take(s.pop());
        });
        a.spawn("pushes", [&s, take] {
          const int first = take(s.pop());
          take(s.pop());
          if (first < 0) return;
          --s.owners[first];
          s.push(first);
        });
      },
      10'000);
  EXPECT_LE(median(found), 500);
}

}  // namespace
