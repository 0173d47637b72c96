// Clauses L1 to L5. A wait without deadline proves by returning that its wake was not lost.
#include <tests/conformance/platform/helpers.hpp>

#include <gtest/gtest.h>

namespace holdfast::conformance {

namespace {

using platform::wake_cause;

// A poller, or the rest of the body makes no sense.
void with_poller(platform::host& host, std::move_only_function<void(platform::poller&)> body) {
  auto made = platform::poller::create(host);
  expect(made.has_value(), "a poller can be made");
  if (made) body(*made);
}

}  // namespace

TEST(PlatformL1, AWakeBeforeTheWaitEndsIt) {
  run_on_side([](platform::host& host) {
    with_poller(host, [&](platform::poller& poller) {
      poller.wake();
      expect(poller.wait(platform::never) & wake_cause::woken, "the wait that began after the wake returns");
    });
  });
}

TEST(PlatformL1, AWakeFromAnotherThreadEndsTheCurrentWait) {
  run_on_side([](platform::host& host) {
    with_poller(host, [&](platform::poller& poller) {
      // Sleeper and waker go hand in hand: each wake may come before, while or after the sleeper goes to sleep.
      platform::atomic<unsigned> asked{0};
      platform::atomic<unsigned> answered{0};
      const unsigned rounds = effort(2'000, 5);
      team threads;
      threads.start([&] {
        for (unsigned i = 1; i <= rounds; ++i) {
          asked.store(i);
          poller.wake();
          while (answered.load() < i) platform::yield();
        }
      });
      for (unsigned done = 0; done < rounds;) {
        expect(poller.wait(platform::never) & wake_cause::woken, "only a wake ends this wait");
        poller.drain_wakes();
        done = asked.load();
        answered.store(done);
      }
      threads.join();
      expect(answered.load() == rounds, "no wake was lost");
    });
  });
}

TEST(PlatformL2, AWakeStaysPendingUntilItIsDrained) {
  run_on_side([](platform::host& host) {
    with_poller(host, [&](platform::poller& poller) {
      poller.wake();
      poller.wake();
      expect(poller.wait(platform::never) & wake_cause::woken, "pending");
      expect(poller.wait(platform::never) & wake_cause::woken, "still pending");
      poller.drain_wakes();
      const auto deadline = host.clock().now() + millisecond;
      const auto cause = poller.wait(deadline);
      expect(!(cause & wake_cause::woken), "one drain forgets every wake before it");
      expect(cause & wake_cause::deadline, "so the deadline ends the wait");
      poller.drain_wakes();
      poller.wake();
      expect(poller.wait(platform::never) & wake_cause::woken, "a wake after a drain counts");
    });
  });
}

TEST(PlatformL3, AReadableDescriptorEndsTheWait) {
  run_on_side([](platform::host& host) {
    with_poller(host, [&](platform::poller& poller) {
      const auto first = make_descriptor(host);
      const auto second = make_descriptor(host);
      expect(poller.add(first->number()) && poller.add(second->number()), "descriptors are watched");
      expect(!(poller.wait(host.clock().now() + millisecond) & wake_cause::descriptor), "not readable yet");
      second->make_readable();
      auto cause = poller.wait(platform::never);
      expect(cause & wake_cause::descriptor, "readable before the wait");
      expect(!(cause & wake_cause::woken), "and nobody woke");
      cause = poller.wait(platform::never);
      expect(cause & wake_cause::descriptor, "readable as long as it is");
      second->make_unreadable();
      expect(!(poller.wait(host.clock().now() + millisecond) & wake_cause::descriptor), "and no longer");

      team threads;
      threads.start([&] { first->make_readable(); });
      expect(poller.wait(platform::never) & wake_cause::descriptor, "readable while it waits");
      threads.join();
      poller.wake();
      cause = poller.wait(platform::never);
      expect(cause & wake_cause::woken && cause & wake_cause::descriptor, "both causes are told");
    });
  });
}

TEST(PlatformL4, AWaitReturnsAtItsDeadlineAndNotBefore) {
  run_on_side([](platform::host& host) {
    with_poller(host, [&](platform::poller& poller) {
      for (unsigned i = 0; i < effort(10, 4); ++i) {
        const auto deadline = host.clock().now() + i * millisecond / 3;
        const auto cause = poller.wait(deadline);
        expect(cause & wake_cause::deadline, "nothing else could end it");
        expect(host.clock().now() >= deadline, "not before its deadline");
      }
      expect(poller.wait(host.clock().now() - platform::duration{1}) & wake_cause::deadline, "a past deadline");
      expect(poller.wait(platform::time_point::min()) & wake_cause::deadline, "a deadline of the distant past");
    });
  });
}

TEST(PlatformL5, AnyThreadMayWake) {
  run_on_side([](platform::host& host) {
    with_poller(host, [&](platform::poller& poller) {
      platform::atomic<unsigned> wakers{0};
      team threads;
      for (unsigned t = 0; t < 3; ++t)
        threads.start([&] {
          for (unsigned i = 0; i < effort(500, 2); ++i) poller.wake();
          wakers.fetch_add(1);
          poller.wake();
        });
      while (wakers.load() < 3) {
        expect(poller.wait(platform::never) & wake_cause::woken, "only a wake ends this wait");
        poller.drain_wakes();
      }
      threads.join();
    });
  });
}

TEST(PlatformL5, RelaxReturnsSoThatASpinningLoopGoesOn) {
  run_on_side([](platform::host& host) {
    with_poller(host, [&](platform::poller& poller) {
      platform::atomic<bool> told{false};
      team threads;
      threads.start([&] { told.store(true); });
      while (!told.load()) {
        poller.relax(host.clock().now() + millisecond);
        platform::yield();
      }
      threads.join();
      expect(told.load(), "what was waited for happened");
    });
  });
}

TEST(PlatformL5, AMovedPollerKeepsItsWakesAndDescriptors) {
  run_on_side([](platform::host& host) {
    with_poller(host, [&](platform::poller& poller) {
      const auto watched = make_descriptor(host);
      expect(poller.add(watched->number()), "the descriptor is watched");
      poller.wake();
      platform::poller moved(std::move(poller));
      expect(moved.wait(platform::never) & wake_cause::woken, "the wake moved");
      moved.drain_wakes();
      watched->make_readable();
      expect(moved.wait(platform::never) & wake_cause::descriptor, "the descriptor moved");
      auto another = platform::poller::create(host);
      expect(another.has_value(), "a poller can be made");
      if (!another) return;
      *another = std::move(moved);
      expect(another->wait(platform::never) & wake_cause::descriptor, "and moved again");
    });
  });
}

}  // namespace holdfast::conformance
