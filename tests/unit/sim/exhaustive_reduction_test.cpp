// The search of all schedules leaves out what cannot matter: with and without its reduction the same outcomes are found,
// of programs written for it and of programs drawn by chance; without a bound, one run of each class of equivalent
// schedules is made to its end; and a world whose fibers tell each other something behind the kernel's back is noticed.
#include <sim/kernel/kernel_scope.hpp>
#include <sim/kernel/random.hpp>
#include <sim/kernel/strategies/exhaustive.hpp>
#include <sim/kernel/world.hpp>

#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/condition_variable.hpp>
#include <holdfast/platform/mutex.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace holdfast::sim {

namespace {

struct found {
  std::set<std::string> outcomes;
  std::uint64_t schedules = 0;
  std::uint64_t whole = 0;  // that were not cut
  bool strayed = false;
};

/// Runs every schedule of `program`, which spawns fibers on the host and says how the run ended. What it returns owns what
/// they share: the fibers of a run that was cut never end, and would take along what they own.
found search(std::uint32_t preemptions, bool reduce,
             const std::function<std::function<std::string()>(host&)>& program) {
  found all;
  exhaustive_strategy chooser(preemptions, reduce);
  do {
    world w({.seed = 1}, chooser);
    host& a = w.add_host("a");
    const auto outcome = program(a);
    const run_end ended = w.run();
    if (ended == run_end::violated) all.outcomes.insert(w.violated()->invariant);
    if (ended == run_end::clean) all.outcomes.insert(outcome());
    all.schedules = chooser.schedules();
    all.whole = chooser.schedules() - chooser.cut();
  } while (chooser.advance());
  all.strayed = chooser.strayed();
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
    a.spawn(i == 0 ? "one" : "two", [shared = shared.get(), i] {
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
  a.spawn("holder", [both = both.get()] {
    both->shared.lock();
    both->shared.unlock();
  });
  a.spawn("trier", [both = both.get()] {
    if (both->shared.try_lock())
      both->shared.unlock();
    else
      both->got = false;
  });
  return [both] { return both->got ? "got it" : "did not"; };
}

/// So many fibers, each so many times: lock, add, unlock.
std::function<std::function<std::string()>(host&)> one_mutex(int fibers, int times) {
  return [=](host& a) -> std::function<std::string()> {
    struct state {
      holdfast::platform::mutex shared{shared_lock};
      int sum = 0;
    };
    const auto all = std::make_shared<state>();
    for (int i = 0; i < fibers; ++i)
      a.spawn("adder-" + std::to_string(i), [all = all.get(), times] {
        for (int n = 0; n < times; ++n) {
          all->shared.lock();
          ++all->sum;
          all->shared.unlock();
        }
      });
    return [all] { return std::to_string(all->sum); };
  };
}

/// Three fibers of three steps drawn from `seed`, over two locks, two atomics and a condition. The outcome is everything
/// that any of them saw.
std::function<std::function<std::string()>(host&)> drawn_program(std::uint64_t seed) {
  return [seed](host& a) -> std::function<std::string()> {
    struct state {
      holdfast::platform::mutex locks[2] = {holdfast::platform::mutex(shared_lock),
                                            holdfast::platform::mutex(own_lock)};
      holdfast::platform::condition_variable condition;
      holdfast::platform::atomic<int> values[2]{};
      int plain[2] = {0, 0};  // each under its lock
      std::string seen[3];
      std::vector<std::uint64_t> steps[3];
    };
    const auto all = std::make_shared<state>();
    random_stream draws = random_stream::derive(seed, "programs");
    for (int i = 0; i < 3; ++i) {
      for (int n = 0; n < 3; ++n) all->steps[i].push_back(draws.below(7) * 2 + draws.below(2));
      a.spawn("fiber-" + std::to_string(i), [all = all.get(), i] {
        const auto saw = [&](int value) {
          kernel_scope kernel;
          all->seen[i] += std::to_string(value) + ' ';
        };
        for (const std::uint64_t step : all->steps[i]) {
          const std::size_t which = step % 2;
          switch (step / 2) {
            case 0: saw(all->values[which].load(std::memory_order_relaxed)); break;
            case 1: all->values[which].store(i + 1, std::memory_order_relaxed); break;
            case 2: saw(all->values[which].fetch_add(10, std::memory_order_relaxed)); break;
            case 3:
              all->locks[which].lock();
              saw(all->plain[which]);
              all->plain[which] = i + 1;
              all->locks[which].unlock();
              break;
            case 4:
              if (all->locks[which].try_lock()) {
                all->plain[which] += 100;
                all->locks[which].unlock();
              } else {
                saw(-1);
              }
              break;
            case 5:
              all->locks[0].lock();
              all->plain[0] += 1000;
              all->locks[0].unlock();
              all->condition.notify_one();
              break;
            case 6:
              all->locks[0].lock();
              if (all->plain[0] < 1000)
                saw(all->condition.wait_until(all->locks[0],
                                              holdfast::platform::time_point(std::chrono::nanoseconds(5))));
              all->locks[0].unlock();
              break;
          }
        }
      });
    }
    return [all] { return all->seen[0] + "| " + all->seen[1] + "| " + all->seen[2]; };
  };
}

/// So many fibers that each add once: two points each, the start and the addition.
std::function<std::function<std::string()>(host&)> adders(int fibers) {
  return [=](host& a) -> std::function<std::string()> {
    const auto sum = std::make_shared<holdfast::platform::atomic<int>>(0);
    for (int i = 0; i < fibers; ++i)
      a.spawn("adder-" + std::to_string(i), [sum = sum.get()] { sum->fetch_add(1, std::memory_order_relaxed); });
    return [sum] { return std::to_string(sum->load(std::memory_order_relaxed)); };
  };
}

/// Counted a second time: leaving a fiber that could go on is one preemption. `left`: points of each fiber.
std::uint64_t schedules_of(std::vector<int> left, int current, std::uint32_t budget) {
  std::uint64_t total = 0;
  bool any = false;
  for (int i = 0; i < static_cast<int>(left.size()); ++i) {
    if (left[static_cast<std::size_t>(i)] == 0) continue;
    any = true;
    const bool leaves = current >= 0 && left[static_cast<std::size_t>(current)] != 0 && i != current;
    if (leaves && budget == 0) continue;
    std::vector<int> after = left;
    --after[static_cast<std::size_t>(i)];
    total += schedules_of(std::move(after), i, budget - (leaves ? 1 : 0));
  }
  return any ? total : 1;
}

/// What the one does next depends on plain memory that the other wrote, and no operation orders the two.
std::function<std::string()> behind_the_kernels_back(host& a) {
  struct state {
    bool written = false;
    holdfast::platform::atomic<int> counters[3]{};
  };
  const auto both = std::make_shared<state>();
  a.spawn("writer", [both = both.get()] {
    both->counters[2].load(std::memory_order_relaxed);
    both->counters[0].fetch_add(1, std::memory_order_relaxed);
    both->written = true;
    for (auto& counter : both->counters) counter.fetch_add(1, std::memory_order_relaxed);
  });
  a.spawn("reader", [both = both.get()] {
    both->counters[2].load(std::memory_order_relaxed);
    both->counters[1].fetch_add(1, std::memory_order_relaxed);
    if (both->written) {
      both->counters[2].store(1, std::memory_order_relaxed);
    } else {
      both->counters[2].fetch_add(1, std::memory_order_relaxed);
    }
    both->counters[0].load(std::memory_order_relaxed);
  });
  return [both] { return std::string(both->written ? "written" : ""); };
}

}  // namespace

TEST(ExhaustiveReduction, WithoutItEveryScheduleIsMadeOnceAndPreemptionsAreCounted) {
  for (int fibers = 2; fibers <= 4; ++fibers)
    for (std::uint32_t preemptions = 0; preemptions <= 3; ++preemptions)
      EXPECT_EQ(search(preemptions, false, adders(fibers)).schedules,
                schedules_of(std::vector<int>(static_cast<std::size_t>(fibers), 2), -1, preemptions))
          << fibers << " fibers, " << preemptions << " preemptions";
}

TEST(ExhaustiveReduction, FindsTheSameOutcomesInFewerSchedules) {
  const found everything = search(2, false, lost_update);
  const found reduced = search(2, true, lost_update);
  EXPECT_EQ(everything.outcomes, (std::set<std::string>{"1", "2"}));
  EXPECT_EQ(reduced.outcomes, everything.outcomes);
  EXPECT_LT(reduced.schedules * 2, everything.schedules);
  EXPECT_FALSE(reduced.strayed);
}

TEST(ExhaustiveReduction, MakesOneRunOfEachClassOfEquivalentSchedulesToItsEnd) {
  // The classes are the orders in which the mutex is taken: multinomial coefficients.
  struct {
    int fibers, times;
    std::uint64_t classes;
  } constexpr programs[] = {{2, 2, 6}, {3, 2, 90}, {3, 3, 1680}, {4, 2, 2520}, {2, 8, 12870}};
  for (const auto& [fibers, times, classes] : programs) {
    const found all = search(exhaustive_strategy::unbounded, true, one_mutex(fibers, times));
    EXPECT_EQ(all.whole, classes) << fibers << " fibers, " << times << " times each";
    EXPECT_EQ(all.outcomes, std::set<std::string>{std::to_string(fibers * times)});
    EXPECT_FALSE(all.strayed);
  }
}

TEST(ExhaustiveReduction, FindsTheSameOutcomesOfProgramsDrawnByChance) {
  std::uint64_t everything = 0, reduced = 0, outcomes = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const std::uint32_t preemptions = 1 + seed % 2;
    const found all = search(preemptions, false, drawn_program(seed));
    const found fewer = search(preemptions, true, drawn_program(seed));
    EXPECT_EQ(fewer.outcomes, all.outcomes) << "program " << seed << ", " << preemptions << " preemptions";
    EXPECT_FALSE(fewer.strayed) << "program " << seed;
    EXPECT_LE(fewer.whole, all.schedules) << "program " << seed;
    everything += all.schedules;
    reduced += fewer.schedules;
    outcomes += all.outcomes.size();
  }
  EXPECT_GT(outcomes, 600u);  // programs that always end the same prove nothing
  EXPECT_LT(reduced * 5, everything * 4);
}

TEST(ExhaustiveReduction, NoticesWhatFibersTellEachOtherBehindTheKernelsBack) {
  EXPECT_TRUE(search(exhaustive_strategy::unbounded, true, behind_the_kernels_back).strayed);
}

TEST(ExhaustiveReduction, StopsBeforeAnUnlock) {
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
