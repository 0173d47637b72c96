// Strategies: the generator behind them, their weights, their names, and replay by index.
//
// How: the random one is asked for many prefixes of choices and must come near the number of distinct ones that chance
// would give (a weak generator made a known tool blind to bugs that need nine choices); the rest asks strategies
// directly, or drives worlds of a few fibers.
#include <sim/kernel/strategies/make_strategy.hpp>
#include <sim/kernel/strategies/random.hpp>
#include <sim/kernel/strategies/replay.hpp>
#include <sim/kernel/world.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace holdfast::sim;

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
  for (const char* text : {"",
                           "luck",
                           "fifo:",
                           "fifo:1",
                           "random:",
                           "random:stay",
                           "random:stay=",
                           "random:stay=-1",
                           "random:stay=1001",
                           "random:go=1",
                           "random:stay=1,,time=1",
                           "random:stay=1,",
                           "exhaustive",
                           "exhaustive:",
                           "exhaustive:65",
                           "exhaustive:x",
                           "replay",
                           "random:stay=1,stay=2",
                           "pct",
                           "pct:",
                           "pct:0",
                           "pct:17",
                           "pct:x",
                           "pct:3,",
                           "pct:3,0",
                           "pct:3,x",
                           "pct:3,1000000001",
                           "pct:3,10,1",
                           "pct:-1",
                           "pct:3, 10"}) {
    const auto made = make_strategy(text);
    EXPECT_FALSE(made.has_value()) << text;
    EXPECT_NE(made.has_value() ? "" : made.error(), "") << text;
  }
}

TEST(MakeStrategy, NamesWhatIsWrong) {
  const auto wrong = [](const char* text) {
    const auto made = make_strategy(text);
    return made.has_value() ? "nothing" : made.error();
  };
  EXPECT_EQ(wrong("random:speed=1"), "random has no weight 'speed'; it has stay and time");
  EXPECT_EQ(wrong("random:stay=1001"), "weight stay of random is '1001', not a number from 0 to 1000");
  EXPECT_EQ(wrong("random:time"), "weight time of random is '', not a number from 0 to 1000");
  EXPECT_EQ(wrong("random:stay=1,time=2,stay=3"), "weight stay of random is given twice");
  EXPECT_EQ(wrong("pct:0"), "the depth of pct is '0', not a number from 1 to 16; write pct:3 or pct:3,2000");
  EXPECT_EQ(wrong("pct:3,many"), "the length of pct is 'many', not a number of choices from 1 to 1000000000");
  for (const char* named : {"fifo", "random:stay=N,time=N", "pct:D,K", "exhaustive:P"})
    EXPECT_NE(wrong("luck").find(named), std::string::npos) << named;
}

TEST(MakeStrategy, TheCanonicalNameMakesTheSameStrategyAgain) {
  const std::pair<const char*, const char*> spellings[] = {
      {"fifo", "fifo"},
      {"random:time=7", "random:stay=500,time=7"},
      {"random:time=7,stay=070", "random:stay=70,time=7"},
      {"pct:1", nullptr},
      {"random", nullptr},
      {"pct:3,2000", "pct:3,2000"},
      {"pct:03,0020", "pct:3,20"},
      {"exhaustive:2", "exhaustive:2"},
  };
  for (const auto& [text, canonical] : spellings) {
    const auto made = make_strategy(text);
    ASSERT_TRUE(made.has_value()) << made.error();
    world w(seeded(11), **made);
    (*made)->begin(w);
    const std::string name((*made)->name());
    if (canonical != nullptr) {
      EXPECT_EQ(name, canonical);
    }
    const auto again = make_strategy(name);
    ASSERT_TRUE(again.has_value()) << again.error();
    (*again)->begin(w);
    EXPECT_EQ((*again)->name(), name);
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

}  // namespace
