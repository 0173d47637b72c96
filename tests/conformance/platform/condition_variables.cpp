// Clauses V1 to V3. That a wait has begun is known without asking: the waiter says so under the mutex, and whoever
// takes the mutex after that finds it waiting. A notification that was lost would leave the test waiting for ever.
#include <tests/conformance/platform/helpers.hpp>

#include <gtest/gtest.h>

namespace holdfast::conformance {

namespace {

// A mutex with everything that its waiters agree on.
struct meeting {
  platform::mutex mutex{subject_lock};
  platform::condition_variable changed;
  unsigned waiting = 0;
  unsigned tokens = 0;
  unsigned taken = 0;

  void take_token() {
    scoped_lock lock(mutex);
    ++waiting;
    while (tokens == 0) changed.wait(mutex);
    --tokens;
    ++taken;
  }
  void until_waiting(unsigned count) {
    for (;;) {
      {
        scoped_lock lock(mutex);
        if (waiting >= count) return;
      }
      platform::yield();
    }
  }
  void until_taken(unsigned count) {
    for (;;) {
      {
        scoped_lock lock(mutex);
        if (taken >= count) return;
      }
      platform::yield();
    }
  }
};

}  // namespace

TEST(PlatformV1, WaitReleasesTheMutexAndOwnsItAgainWhenItReturns) {
  run_on_side([](platform::host&) {
    meeting m;
    unsigned inside = 0;
    bool done = false;
    team threads;
    threads.start([&] {
      scoped_lock lock(m.mutex);
      for (unsigned i = 0; i < effort(200, 4); ++i) {
        ++m.waiting;
        while (m.tokens == 0) m.changed.wait(m.mutex);
        --m.tokens;
        expect(++inside == 1, "the mutex is owned again when wait returns");
        platform::yield();
        --inside;
      }
      done = true;
    });
    for (;;) {
      // Getting here at all needs the waiter to have released the mutex.
      scoped_lock lock(m.mutex);
      if (done) break;
      expect(++inside == 1, "the mutex is not owned by a waiter");
      if (m.waiting > m.taken) {
        ++m.taken;
        ++m.tokens;
        m.changed.notify_one();
      }
      --inside;
      lock.unlock();
      platform::yield();
    }
    threads.join();
    expect(m.tokens == 0, "every token was taken");
  });
}

TEST(PlatformV2, NotifyOneEndsTheWaitThatHadBegun) {
  run_on_side([](platform::host&) {
    for (unsigned i = 0; i < effort(50, 1); ++i) {
      meeting m;
      team threads;
      threads.start([&] { m.take_token(); });
      m.until_waiting(1);
      {
        scoped_lock lock(m.mutex);
        m.tokens = 1;
      }
      m.changed.notify_one();
      threads.join();
      expect(m.taken == 1, "the waiter returned and took the token");
    }
  });
}

TEST(PlatformV2, EachNotifyOneEndsAWaitOfSomebody) {
  run_on_side([](platform::host&) {
    meeting m;
    team threads;
    for (unsigned t = 0; t < 3; ++t) threads.start([&] { m.take_token(); });
    m.until_waiting(3);
    for (unsigned t = 1; t <= 3; ++t) {
      {
        scoped_lock lock(m.mutex);
        ++m.tokens;
        m.changed.notify_one();
      }
      m.until_taken(t);
    }
    threads.join();
    expect(m.taken == 3 && m.tokens == 0, "three notifications, three waits ended");
  });
}

TEST(PlatformV2, NotifyAllEndsEveryWaitThatHadBegun) {
  run_on_side([](platform::host&) {
    meeting m;
    team threads;
    for (unsigned t = 0; t < 3; ++t) threads.start([&] { m.take_token(); });
    m.until_waiting(3);
    {
      scoped_lock lock(m.mutex);
      m.tokens = 3;
    }
    m.changed.notify_all();
    threads.join();
    expect(m.taken == 3, "all returned");
  });
}

TEST(PlatformV3, WaitUntilAnswersFalseOnlyAfterItsDeadline) {
  run_on_side([](platform::host& host) {
    platform::mutex mutex(subject_lock);
    platform::condition_variable nobody;
    for (unsigned i = 0; i < effort(10, 3); ++i) {
      const auto deadline = host.clock().now() + (i + 1) * millisecond / 4;
      scoped_lock lock(mutex);
      while (nobody.wait_until(mutex, deadline)) {
      }
      expect(host.clock().now() >= deadline, "false means that the deadline passed");
    }
  });
}

TEST(PlatformV3, ADeadlineInThePastEndsTheWaitAndKeepsTheMutex) {
  run_on_side([](platform::host& host) {
    platform::mutex mutex(subject_lock);
    platform::condition_variable nobody;
    bool taken = true;
    {
      scoped_lock lock(mutex);
      while (nobody.wait_until(mutex, host.clock().now() - platform::duration{1})) {
      }
      while (nobody.wait_until(mutex, platform::time_point::min())) {
      }
      team threads;
      threads.start([&] {
        if (mutex.try_lock())
          mutex.unlock();
        else
          taken = false;
      });
    }
    expect(!taken, "the mutex is owned after a wait that timed out");
  });
}

TEST(PlatformV3, ANotifiedWaitWithADeadlineEndsBeforeIt) {
  run_on_side([](platform::host& host) {
    for (const bool endless : {false, true}) {
      meeting m;
      const auto deadline = endless ? platform::never : host.clock().now() + 3'600'000 * millisecond;
      bool told = false;
      team threads;
      threads.start([&] {
        scoped_lock lock(m.mutex);
        ++m.waiting;
        while (m.tokens == 0) {
          told = m.changed.wait_until(m.mutex, deadline);
          if (!told) break;
        }
      });
      m.until_waiting(1);
      {
        scoped_lock lock(m.mutex);
        m.tokens = 1;
        m.changed.notify_one();
      }
      threads.join();
      // A simulated hour may pass while the waiter stands still; a real one does not.
      expect(told || host.clock().now() >= deadline, "true unless the deadline passed");
    }
  });
}

}  // namespace holdfast::conformance
