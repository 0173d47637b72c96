// The search of all schedules leaves out what cannot matter: with and without its reduction the same outcomes are found,
// with it in fewer schedules, and a lock that somebody tries is not mistaken for one that everybody waits for.
#include <sim/kernel/strategies/exhaustive.hpp>
#include <sim/kernel/world.hpp>

#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/mutex.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

namespace holdfast::sim {

namespace {

struct found {
  std::set<std::string> outcomes;
  std::uint64_t schedules = 0;
};

/// Runs every schedule of `program`, which spawns fibers on the host and says how the run ended.
found search(std::uint32_t preemptions, bool reduce,
             const std::function<std::function<std::string()>(host&)>& program) {
  found all;
  exhaustive_strategy chooser(preemptions, reduce);
  do {
    world w({.seed = 1}, chooser);
    host& a = w.add_host("a");
    const auto outcome = program(a);
    w.run();
    EXPECT_FALSE(w.violated()) << (w.violated() ? w.violated()->message : "");
    all.outcomes.insert(outcome());
    all.schedules = chooser.schedules();
  } while (chooser.advance());
  EXPECT_FALSE(chooser.strayed());
  return all;
}

constexpr holdfast::lock_class shared_lock{100, false, "shared"};
constexpr holdfast::lock_class own_lock{200, true, "own"};

/// Two fibers that each use a lock of their own, and a shared counter without one.
std::function<std::string()> lost_update(host& a) {
  struct state {
    holdfast::platform::mutex own[2] = {holdfast::platform::mutex(own_lock), holdfast::platform::mutex(own_lock)};
    holdfast::platform::atomic<int> counter{0};
  };
  const auto shared = std::make_shared<state>();
  for (int i = 0; i < 2; ++i)
    a.spawn(i == 0 ? "one" : "two", [shared, i] {
      for (int n = 0; n < 2; ++n) {
        shared->own[i].lock();
        shared->own[i].unlock();
      }
      const int seen = shared->counter.load(std::memory_order_relaxed);
      shared->counter.store(seen + 1, std::memory_order_relaxed);
    });
  return [shared] { return std::to_string(shared->counter.load(std::memory_order_relaxed)); };
}

/// One fiber holds a lock for a moment, the other only tries it.
std::function<std::string()> tried_lock(host& a) {
  struct state {
    holdfast::platform::mutex shared{shared_lock};
    bool got = true;
  };
  const auto both = std::make_shared<state>();
  a.spawn("holder", [both] {
    both->shared.lock();
    both->shared.unlock();
  });
  a.spawn("trier", [both] {
    if (both->shared.try_lock())
      both->shared.unlock();
    else
      both->got = false;
  });
  return [both] { return both->got ? "got it" : "did not"; };
}

}  // namespace

TEST(ExhaustiveReduction, FindsTheSameOutcomesInFewerSchedules) {
  const found everything = search(2, false, lost_update);
  const found reduced = search(2, true, lost_update);
  EXPECT_EQ(everything.outcomes, (std::set<std::string>{"1", "2"}));
  EXPECT_EQ(reduced.outcomes, everything.outcomes);
  EXPECT_LT(reduced.schedules * 2, everything.schedules);
}

TEST(ExhaustiveReduction, StopsBeforeAnUnlockIfSomebodyTriesTheLock) {
  const found reduced = search(1, true, tried_lock);
  EXPECT_EQ(reduced.outcomes, (std::set<std::string>{"did not", "got it"}));
}

TEST(ExhaustiveReduction, MakesWhatIsNotSearchedInOneOrder) {
  const found one = search(2, true, [](host& a) {
    a.owner().search(false);
    return lost_update(a);
  });
  EXPECT_EQ(one.outcomes, std::set<std::string>{"2"});
  EXPECT_EQ(one.schedules, 1u);
}

}  // namespace holdfast::sim
