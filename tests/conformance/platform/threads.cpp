// Clauses T1 to T4 and S1.
#include <tests/conformance/platform/helpers.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace holdfast::conformance {

TEST(PlatformT1, StartRunsTheBodyOnceOnAnotherThread) {
  run_on_side([](platform::host&) {
    unsigned runs = 0;
    std::uint64_t number = 0;
    auto started = platform::thread::start("once", [&] {
      ++runs;
      number = platform::this_thread_number();
    });
    expect(started.has_value(), "the thread starts");
    if (!started) return;
    expect(started->joinable(), "a started thread can be joined");
    started->join();
    expect(!started->joinable(), "a joined one cannot");
    expect(runs == 1, "the body ran once");
    expect(number != platform::this_thread_number(), "on another thread");
  });
}

TEST(PlatformT1, ANameOfAnyLengthIsTaken) {
  run_on_side([](platform::host&) {
    for (const std::string_view name : {"", "a name that is longer than the system shows"}) {
      bool ran = false;
      auto started = platform::thread::start(name, [&] { ran = true; });
      expect(started.has_value(), "the thread starts");
      if (started) started->join();
      expect(ran, "the body ran");
    }
  });
}

TEST(PlatformT2, JoinReturnsAfterTheBodyDid) {
  run_on_side([](platform::host&) {
    for (unsigned i = 0; i < effort(100, 2); ++i) {
      std::uint64_t written = 0;
      auto started = platform::thread::start("writer", [&] {
        platform::yield();
        written = 1;
        platform::yield();
        written = 2;
      });
      if (started) started->join();
      expect(written == 2, "all that the body wrote is seen");
    }
  });
}

TEST(PlatformT2, AMovedThreadIsJoinedByItsNewOwner) {
  run_on_side([](platform::host&) {
    bool ran = false;
    platform::thread owner;
    expect(!owner.joinable(), "a thread that was never started is nobody's to join");
    auto started = platform::thread::start("moved", [&] { ran = true; });
    expect(started.has_value(), "the thread starts");
    if (!started) return;
    owner = std::move(*started);
    expect(!started->joinable() && owner.joinable(), "the duty to join moved");
    owner.join();
    expect(ran, "the body ran");
  });
}

TEST(PlatformT2, AnAbandonedThreadRunsOnAndIsNobodysToJoin) {
  run_on_side([](platform::host&) {
    const auto done = std::make_shared<counter>();
    {
      auto started = platform::thread::start("abandoned", [done] { done->add(); });
      expect(started.has_value(), "the thread starts");
      if (!started) return;
      started->abandon();
      expect(!started->joinable(), "an abandoned thread cannot be joined");
    }
    done->wait_for(1);
    expect(done->value() == 1, "it ran to its end");
  });
}

TEST(PlatformT3, NumbersOfLivingThreadsAreUniqueAndNotZero) {
  run_on_side([](platform::host&) {
    counter arrived;
    std::vector<std::uint64_t> numbers(5, 0);
    numbers[0] = platform::this_thread_number();
    team threads;
    for (std::size_t t = 1; t < numbers.size(); ++t)
      threads.start([&, t] {
        numbers[t] = platform::this_thread_number();
        arrived.add();
        arrived.wait_for(numbers.size() - 1);  // all of them live at once
        expect(numbers[t] == platform::this_thread_number(), "a thread keeps its number");
      });
    threads.join();
    std::ranges::sort(numbers);
    expect(numbers.front() != 0, "0 is nobody's number");
    expect(std::ranges::adjacent_find(numbers) == numbers.end(), "no two living threads share one");
  });
}

TEST(PlatformT4, DestroyingAJoinableThreadStopsTheProcess) {
  const auto seen = stop_on_side([](platform::host&) {
    auto started = platform::thread::start("forgotten", [] {});
    started = std::unexpected(0);
    expect(false, "the process goes on");
  });
  EXPECT_TRUE(seen.stopped) << seen.said;
}

TEST(PlatformS1, ASlotHoldsOnePointerForEachThreadNullAtFirst) {
  run_on_side([](platform::host&) {
    platform::thread_slot<int> slot;
    platform::thread_slot<int> other;
    counter arrived;
    int mine = 0;
    expect(slot.get() == nullptr, "null at first");
    expect(slot.set(&mine), "a slot can be set");
    team threads;
    for (unsigned t = 0; t < 3; ++t)
      threads.start([&] {
        int theirs[2] = {};
        expect(slot.get() == nullptr, "null at first, whatever another thread stored");
        expect(slot.set(&theirs[0]), "a slot can be set");
        arrived.add();
        arrived.wait_for(3);
        expect(slot.get() == &theirs[0], "every thread reads what it stored");
        expect(slot.set(&theirs[1]) && slot.get() == &theirs[1], "and may store again");
        expect(other.get() == nullptr, "another slot is another pointer");
      });
    threads.join();
    expect(slot.get() == &mine, "others' pointers are not ours");
    expect(slot.set(nullptr) && slot.get() == nullptr, "a slot can be emptied");
  });
}

TEST(PlatformS1, ASlotThatIsMadeAgainIsEmptyAgain) {
  run_on_side([](platform::host&) {
    int value = 0;
    for (unsigned i = 0; i < effort(2'000, 3); ++i) {
      platform::thread_slot<int> slot;
      expect(slot.get() == nullptr, "a new slot is empty");
      expect(slot.set(&value) && slot.get() == &value, "and usable");
    }
  });
}

}  // namespace holdfast::conformance
