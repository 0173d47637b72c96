// Clauses R1 to R3. Owners write plain data before they let go; the one that is told to be last reads all of it.
#include <tests/conformance/platform/helpers.hpp>

#include <gtest/gtest.h>

namespace holdfast::conformance {

TEST(PlatformR1, ExactlyOneOwnerIsToldThatItWasTheLast) {
  run_on_side([](platform::host&) {
    for (unsigned i = 0; i < effort(200, 2); ++i) {
      platform::ref_count count(3);
      platform::atomic<int> last{0};
      team threads;
      for (unsigned t = 0; t < 3; ++t)
        threads.start([&] {
          count.increment();
          if (count.decrement()) last.fetch_add(1);
          if (count.decrement()) last.fetch_add(1);
        });
      threads.join();
      expect(last.load() == 1, "one of six decrements took the count to zero");
      expect(count.observed() == 0, "and zero it is");
    }
  });
}

TEST(PlatformR2, TheLastOwnerSeesWhatEveryOtherDid) {
  run_on_side([](platform::host&) {
    for (unsigned i = 0; i < effort(200, 2); ++i) {
      platform::ref_count count(3);
      std::uint64_t used[3] = {0, 0, 0};
      bool destroyed = false;
      team threads;
      for (unsigned t = 0; t < 3; ++t)
        threads.start([&, t] {
          used[t] = t + 1;
          if (!count.decrement()) return;
          expect(used[0] == 1 && used[1] == 2 && used[2] == 3, "every use happened before the destruction");
          used[0] = used[1] = used[2] = 0;
          destroyed = true;
        });
      threads.join();
      expect(destroyed, "somebody was last");
    }
  });
}

TEST(PlatformR3, NothingComesBackFromZero) {
  run_on_side([](platform::host&) {
    platform::ref_count count;
    expect(count.observed() == 1, "one owner at first");
    expect(count.increment_unless_zero(), "a living count can be shared");
    expect(!count.decrement(), "one owner is left");
    expect(count.decrement(), "none is left");
    expect(!count.increment_unless_zero(), "zero stays zero");
    expect(count.observed() == 0, "a refused increment leaves no mark");
  });
}

TEST(PlatformR3, AWeakOwnerEitherGetsALivingObjectOrIsRefused) {
  run_on_side([](platform::host&) {
    for (unsigned i = 0; i < effort(300, 2); ++i) {
      platform::ref_count count;
      platform::atomic<int> last{0};
      platform::atomic<bool> destroyed{false};
      const auto let_go = [&] {
        if (!count.decrement()) return;
        destroyed.store(true);
        last.fetch_add(1);
      };
      team threads;
      threads.start(let_go);
      for (unsigned t = 0; t < 2; ++t)
        threads.start([&] {
          if (!count.increment_unless_zero()) return;
          expect(!destroyed.load(), "what was got is alive");
          let_go();
        });
      threads.join();
      expect(last.load() == 1, "destroyed once");
    }
  });
}

}  // namespace holdfast::conformance
