// The two structures that every step of a world goes through: the set of ready fibers and the queue of events.
//
// How: each is driven with random operations beside the plainest thing that does the same, and must answer alike; the
// queue also lets its events add, cancel and fail to return, as a run that stops in one does.
#include <sim/kernel/event_queue.hpp>
#include <sim/kernel/random.hpp>
#include <sim/kernel/ready_set.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace {

using namespace holdfast::sim;

TEST(ReadySet, AnswersAsASortedSetDoes) {
  for (const std::uint32_t fibers : {1u, 2u, 7u, 8u, 9u, 63u, 64u, 65u, 300u}) {
    random_stream random(fibers);
    ready_set ready;
    std::set<std::uint32_t> plain;
    for (std::uint32_t i = 0; i < fibers; ++i) ready.grow(i + 1);
    for (int step = 0; step < 2000; ++step) {
      const auto fiber = static_cast<std::uint32_t>(random.below(fibers));
      const bool in = !plain.contains(fiber);
      ready.flip(fiber, in);
      if (in)
        plain.insert(fiber);
      else
        plain.erase(fiber);
      ASSERT_EQ(ready.count(), plain.size());
      std::uint32_t rank = 0;
      for (const std::uint32_t each : plain) {
        ASSERT_EQ(ready.at(rank), each) << fibers << " fibers";
        ASSERT_EQ(ready.rank_of(each), rank) << fibers << " fibers";
        ++rank;
      }
    }
    ready.clear();
    EXPECT_EQ(ready.count(), 0u);
    ready.flip(fibers - 1, true);
    EXPECT_EQ(ready.at(0), fibers - 1);
  }
}

TEST(EventQueue, TakesEventsInOrderOfTimeAndThenOfArrival) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    random_stream random(seed);
    event_queue queue;
    std::map<std::pair<std::int64_t, int>, std::uint64_t> plain;  // by time and arrival: the event's name
    std::vector<std::pair<std::int64_t, int>> acted, expected;
    int arrivals = 0;
    std::int64_t now = 0;
    for (int step = 0; step < 3000; ++step) {
      const std::uint64_t what = random.below(10);
      if (what < 5 || plain.empty()) {
        const std::int64_t time = now + static_cast<std::int64_t>(random.below(30));
        const int arrival = arrivals++;
        plain[{time, arrival}] = queue.add(time, [&acted, time, arrival] { acted.emplace_back(time, arrival); });
      } else if (what < 7) {
        const auto which = std::next(plain.begin(), static_cast<std::ptrdiff_t>(random.below(plain.size())));
        EXPECT_TRUE(queue.cancel(which->second));
        EXPECT_FALSE(queue.cancel(which->second));
        plain.erase(which);
      } else {
        const auto first = plain.begin();
        expected.push_back(first->first);
        now = first->first.first;
        const event_queue::due due = queue.take();
        ASSERT_EQ(due.time_ns, now);
        EXPECT_FALSE(queue.cancel(first->second)) << "it acts";
        queue.act(due);
        plain.erase(first);
      }
      ASSERT_EQ(queue.live(), plain.size());
    }
    EXPECT_EQ(acted, expected);
  }
}

TEST(EventQueue, WhatAnEventDoesMayAddAndCancelOthers) {
  event_queue queue;
  std::vector<int> acted;
  const std::uint64_t doomed = queue.add(20, [&acted] { acted.push_back(-1); });
  queue.add(10, [&] {
    EXPECT_TRUE(queue.cancel(doomed));
    // Enough to move whatever moves when it grows.
    for (int i = 0; i < 1000; ++i) queue.add(1000 - i, [&acted, i] { acted.push_back(i); });
    acted.push_back(1000);
  });
  while (queue.live() != 0) queue.act(queue.take());
  ASSERT_EQ(acted.size(), 1001u);
  EXPECT_TRUE(std::ranges::is_sorted(acted, std::greater<>{}));
}

TEST(EventQueue, ClearingForgetsWhatIsDueAndWhatNeverReturned) {
  event_queue queue;
  const auto token = std::make_shared<int>(0);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) queue.add(i, [token] {});
    // Taken, and abandoned as a run that stops inside it is.
    const event_queue::due abandoned = queue.take();
    EXPECT_EQ(abandoned.time_ns, 0);
    EXPECT_EQ(token.use_count(), 101);
    queue.clear();
    EXPECT_EQ(token.use_count(), 1);
    EXPECT_EQ(queue.live(), 0u);
  }
  EXPECT_FALSE(queue.cancel(0));
  EXPECT_FALSE(queue.cancel(12345));
}

}  // namespace
