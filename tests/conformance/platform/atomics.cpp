// Clauses A1 and A2: atomicity by counting, orders by the litmus shapes that break without them.
#include <tests/conformance/platform/helpers.hpp>

#include <gtest/gtest.h>

namespace holdfast::conformance {

namespace {

enum class color : std::uint8_t { red, green, blue };

}  // namespace

TEST(PlatformA1, ReadModifyWritesOfSeveralThreadsLoseNothing) {
  run_on_side([](platform::host&) {
    platform::atomic<std::uint64_t> added{0};
    platform::atomic<std::uint64_t> swapped{0};
    platform::atomic<std::uint32_t> bits{0};
    const unsigned rounds = effort(5'000, 6);
    team threads;
    for (unsigned t = 0; t < 3; ++t)
      threads.start([&, t] {
        for (unsigned i = 0; i < rounds; ++i) {
          added.fetch_add(3);
          added.fetch_sub(1);
          auto seen = swapped.load(std::memory_order_relaxed);
          while (!swapped.compare_exchange_weak(seen, seen + 1)) {
          }
          expect((bits.fetch_or(1u << t) & (1u << t)) == 0, "this bit was clear: only one thread sets it");
          expect((bits.fetch_and(~(1u << t)) & (1u << t)) != 0, "this bit was set: only one thread clears it");
        }
      });
    threads.join();
    expect(added.load() == 6ull * rounds, "every addition and subtraction counts");
    expect(swapped.load() == 3ull * rounds, "every exchange counts");
    expect(bits.load() == 0, "every bit was cleared");
  });
}

TEST(PlatformA1, AnExchangedValueGoesToExactlyOneThread) {
  run_on_side([](platform::host&) {
    platform::atomic<int> slot{0};
    platform::atomic<int> received{0};
    const int values = static_cast<int>(effort(2'000, 6));
    team threads;
    threads.start([&] {
      for (int i = 1; i <= values; ++i)
        for (int empty = 0; !slot.compare_exchange_strong(empty, i); empty = 0) platform::yield();
    });
    for (unsigned t = 0; t < 2; ++t)
      threads.start([&] {
        while (received.load() < values) {
          if (slot.exchange(0) != 0) received.fetch_add(1);
          platform::yield();
        }
      });
    threads.join();
    expect(received.load() == values, "every value arrived once");
  });
}

TEST(PlatformA1, ACompareExchangeThatFailsReportsTheValueAndChangesNothing) {
  run_on_side([](platform::host&) {
    platform::atomic<int> number{7};
    int expected = 3;
    expect(!number.compare_exchange_strong(expected, 9), "3 is not 7");
    expect(expected == 7 && number.load() == 7, "the value is reported and kept");
    expect(number.compare_exchange_strong(expected, 9, std::memory_order_acq_rel, std::memory_order_acquire), "7 is 7");
    expect(number.exchange(11, std::memory_order_acq_rel) == 9, "exchange answers what was there");
    expect(number.load() == 11, "and leaves what was given");
  });
}

TEST(PlatformA1, BoolsEnumerationsAndPointersAreAtomicToo) {
  run_on_side([](platform::host&) {
    platform::atomic<bool> flag{false};
    platform::atomic<color> paint{color::red};
    int things[2] = {};
    platform::atomic<int*> pointer{nullptr};
    expect(!flag.exchange(true) && flag.load(), "a bool");
    color seen = color::green;
    expect(!paint.compare_exchange_strong(seen, color::blue) && seen == color::red, "an enumeration that differs");
    while (!paint.compare_exchange_weak(seen, color::blue)) {
    }
    expect(paint.load() == color::blue, "an enumeration that matched");
    pointer.store(&things[0], std::memory_order_release);
    expect(pointer.exchange(&things[1]) == &things[0], "a pointer");
    expect(pointer.load(std::memory_order_acquire) == &things[1], "another pointer");
  });
}

TEST(PlatformA1, WhatWasWrittenBeforeAReleaseIsSeenAfterItsAcquire) {
  run_on_side([](platform::host&) {
    for (unsigned i = 0; i < effort(200, 2); ++i) {
      std::uint64_t message = 0;
      platform::atomic<bool> sent{false};
      team threads;
      threads.start([&] {
        message = 42;
        sent.store(true, std::memory_order_release);
      });
      threads.start([&] {
        while (!sent.load(std::memory_order_acquire)) platform::yield();
        expect(message == 42, "the message is there when the flag is");
      });
    }
  });
}

TEST(PlatformA2, TwoThreadsThatStoreThenLoadDoNotBothMissTheOther) {
  run_on_side([](platform::host&) {
    const unsigned rounds = effort(2'000, 2);
    platform::atomic<unsigned> arrived{0};
    platform::atomic<unsigned> mark[2] = {0, 0};
    unsigned saw[2] = {0, 0};
    team threads;
    for (unsigned me = 0; me < 2; ++me)
      threads.start([&, me] {
        unsigned meetings = 0;
        const auto meet = [&] {
          arrived.fetch_add(1);
          meetings += 2;
          while (arrived.load() < meetings) platform::yield();
        };
        for (unsigned round = 1; round <= rounds; ++round) {
          mark[me].store(round);
          saw[me] = mark[1 - me].load();
          meet();
          if (me == 0) expect(saw[0] == round || saw[1] == round, "one of the loads comes after both stores");
          meet();
        }
      });
  });
}

TEST(PlatformA2, TwoReadersAgreeOnTheOrderOfTwoWrites) {
  run_on_side([](platform::host&) {
    for (unsigned i = 0; i < effort(100, 2); ++i) {
      platform::atomic<int> x{0};
      platform::atomic<int> y{0};
      int x_first = -1, y_after_x = -1, y_first = -1, x_after_y = -1;
      team threads;
      threads.start([&] { x.store(1); });
      threads.start([&] { y.store(1); });
      threads.start([&] {
        x_first = x.load();
        y_after_x = y.load();
      });
      threads.start([&] {
        y_first = y.load();
        x_after_y = x.load();
      });
      threads.join();
      const bool x_before_y = x_first == 1 && y_after_x == 0;
      const bool y_before_x = y_first == 1 && x_after_y == 0;
      expect(!(x_before_y && y_before_x), "there is one order of the two stores");
    }
  });
}

}  // namespace holdfast::conformance
