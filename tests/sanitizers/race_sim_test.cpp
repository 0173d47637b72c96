// The ThreadSanitizer build of the simulator sees races between fibers, and only those.
//
// How: each test runs a world whose program has a plain member that two fibers use. The tool calls back for every report;
// what it says is counted, and judged here instead of by the exit code.
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/condition_variable.hpp>
#include <holdfast/platform/executor.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/platform/mutex.hpp>
#include <holdfast/platform/ref_count.hpp>
#include <holdfast/platform/thread.hpp>

#include <sim/kernel/strategies/fifo.hpp>
#include <sim/kernel/world.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace {

unsigned reports = 0;

}  // namespace

extern "C" {
// Called under the tool's own locks.
HOLDFAST_UNWATCHED void __tsan_on_report(void*) { ++reports; }
// Worlds follow each other at the same addresses, and each is judged for itself.
const char* __tsan_default_options() { return "suppress_equal_addresses=0:suppress_equal_stacks=0"; }
}

namespace __tsan {
bool OnFinalize(bool) { return false; }  // reports were wanted: they are no reason for another exit code
}  // namespace __tsan

namespace {

namespace hf = holdfast;
namespace sim = holdfast::sim;

constexpr hf::lock_class guard{500, false, "guard"};

/// What a program keeps, as core does: a plain member, and what may guard it.
struct books {
  [[gnu::noinline]] void add(std::uint64_t n) { total += n; }
  [[gnu::noinline]] std::uint64_t read() const { return total; }
  std::uint64_t total = 0;
  hf::platform::mutex mutex{guard};
  hf::platform::condition_variable changed;
  hf::platform::atomic<bool> told{false};
  hf::platform::ref_count users{2};
};

/// Runs `first` and `second` on two fibers of one host, over one set of books, and says what the tool reported.
unsigned reported(std::function<void(books&)> first, std::function<void(books&)> second) {
  static books* shared = nullptr;
  books kept;
  shared = &kept;
  reports = 0;
  sim::fifo_strategy strategy;
  sim::world world({}, strategy);
  sim::host& host = world.add_host("a");
  host.spawn("first", [&] { first(*shared); });
  host.spawn("second", [&] { second(*shared); });
  EXPECT_EQ(world.run(), sim::run_end::clean) << world.violated()->message;
  return reports;
}

TEST(Race, APlainMemberThatTwoFibersChangeIsReported) {
  const auto change = [](books& b) {
    b.add(1);
    hf::platform::yield();
  };
  EXPECT_NE(reported(change, change), 0u);
}

TEST(Race, TheSameMemberUnderALockIsNot) {
  const auto change = [](books& b) {
    b.mutex.lock();
    b.add(1);
    b.mutex.unlock();
    hf::platform::yield();
  };
  EXPECT_EQ(reported(change, change), 0u);
}

TEST(Race, AReaderWithoutTheLockOfTheWriterIsReported) {
  const auto write = [](books& b) {
    b.mutex.lock();
    b.add(1);
    b.mutex.unlock();
  };
  const auto read = [](books& b) { EXPECT_LE(b.read(), 1u); };
  EXPECT_NE(reported(write, read), 0u);
}

TEST(Race, WhatIsToldThroughAnAtomicOrAConditionIsNot) {
  const auto write = [](books& b) {
    b.add(1);
    b.told.store(true);
  };
  const auto read = [](books& b) {
    while (!b.told.load()) hf::platform::yield();
    EXPECT_EQ(b.read(), 1u);
  };
  EXPECT_EQ(reported(write, read), 0u);
  const auto wait = [](books& b) {
    b.mutex.lock();
    while (b.read() == 0) b.changed.wait(b.mutex);
    b.mutex.unlock();
  };
  const auto notify = [](books& b) {
    b.mutex.lock();
    b.add(1);
    b.changed.notify_one();
    b.mutex.unlock();
  };
  EXPECT_EQ(reported(wait, notify), 0u);
}

TEST(Race, WhoeverDropsTheLastReferenceMayUseWhatOthersLeft) {
  const auto drop = [](books& b) {
    if (b.users.observed() == 2) b.add(1);
    if (b.users.decrement()) {
      EXPECT_EQ(b.read(), 1u);
    }
  };
  EXPECT_EQ(reported(drop, drop), 0u);
}

TEST(Race, WorkOfAnExecutorAndItsPosterAreOrderedAndNothingElseIs) {
  for (const bool late : {false, true}) {
    const auto post = [late](books& b) {
      hf::platform::host platform(*sim::world::current().running_host());
      b.add(1);
      platform.executor().execute([&b] {
        b.add(1);
        b.told.store(true);
      });
      if (late) b.add(1);  // the work may run meanwhile
      while (!b.told.load()) hf::platform::yield();
      platform.stop();
      EXPECT_GE(b.read(), 2u);
    };
    EXPECT_EQ(reported(post, [](books&) {}) != 0, late);
  }
}

TEST(Race, AThreadIsOrderedWithItsStartAndItsJoinOnly) {
  for (const bool late : {false, true}) {
    const auto start = [late](books& b) {
      b.add(1);
      auto made = hf::platform::thread::start("third", [&b] { b.add(1); });
      if (late) b.add(1);
      made->join();
      EXPECT_GE(b.read(), 2u);
    };
    EXPECT_EQ(reported(start, [](books&) {}) != 0, late);
  }
}

TEST(Race, ALaterWorldKnowsNothingOfAnEarlierOne) {
  // The same memory, stacks and heap, other fibers.
  const auto change = [](books& b) {
    const std::unique_ptr<std::uint64_t> made = std::make_unique<std::uint64_t>(7);
    b.mutex.lock();
    b.add(*made);
    b.mutex.unlock();
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(reported(change, change), 0u);
}

}  // namespace
