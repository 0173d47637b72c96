// Clauses C1 and C2: time never runs back, whichever thread reads it, and is counted in signed nanoseconds.
#include <tests/conformance/platform/helpers.hpp>

#include <gtest/gtest.h>

#include <type_traits>

namespace holdfast::conformance {

TEST(PlatformC1, TimeNeverDecreasesForOneThread) {
  run_on_side([](platform::host& host) {
    auto last = host.clock().now();
    for (unsigned i = 0; i < effort(100'000, 100); ++i) {
      const auto now = host.clock().now();
      expect(now >= last, "a later reading is not smaller");
      last = now;
      if (i % 8 == 0) platform::yield();
    }
  });
}

TEST(PlatformC1, TimeNeverDecreasesFromOneThreadToTheNext) {
  run_on_side([](platform::host& host) {
    platform::mutex mutex(subject_lock);
    auto last = host.clock().now();
    team threads;
    for (unsigned t = 0; t < 3; ++t)
      threads.start([&] {
        for (unsigned i = 0; i < effort(10'000, 20); ++i) {
          scoped_lock lock(mutex);
          const auto now = host.clock().now();
          expect(now >= last, "a reading after another thread's is not smaller");
          last = now;
        }
      });
    threads.join();
    expect(host.clock().now() >= last, "the last reading is the largest");
  });
}

TEST(PlatformC2, TimeIsCountedInSignedNanosecondsOf64Bits) {
  static_assert(std::is_same_v<platform::clock::rep, std::int64_t>);
  static_assert(std::is_same_v<platform::clock::period, std::nano>);
  static_assert(std::is_same_v<platform::time_point::duration, std::chrono::nanoseconds>);
  run_on_side([](platform::host& host) {
    const auto before = host.clock().now();
    platform::mutex mutex(subject_lock);
    platform::condition_variable nobody;
    {
      scoped_lock lock(mutex);
      while (nobody.wait_until(mutex, before + 2 * millisecond)) {
      }
    }
    const auto passed = host.clock().now() - before;
    expect(passed.count() >= 2'000'000, "two milliseconds are two million");
    // Who runs a simulation or a slow machine may take long, but not a thousand times as long.
    expect(passed.count() < 2'000'000'000, "two milliseconds are not two thousand million");
  });
}

}  // namespace holdfast::conformance
