// Clauses M1 to M4: who is inside counts itself in plain variables, which a second owner, or a missing
// happens-before, would tear; ThreadSanitizer watches the same variables.
#include <tests/conformance/platform/helpers.hpp>

#include <gtest/gtest.h>

namespace holdfast::conformance {

TEST(PlatformM1, AMutexHasAtMostOneOwner) {
  run_on_side([](platform::host&) {
    platform::mutex mutex(subject_lock);
    unsigned inside = 0;
    unsigned total = 0;
    team threads;
    for (unsigned t = 0; t < 3; ++t)
      threads.start([&] {
        for (unsigned i = 0; i < effort(3'000, 6); ++i) {
          scoped_lock lock(mutex);
          expect(++inside == 1, "nobody else is inside");
          if (i % 4 == 0) platform::yield();
          ++total;
          --inside;
        }
      });
    threads.join();
    expect(total == 3 * effort(3'000, 6), "no entry was lost");
  });
}

TEST(PlatformM1, LockAndTryLockExcludeEachOther) {
  run_on_side([](platform::host&) {
    platform::mutex mutex(subject_lock);
    unsigned inside = 0;
    team threads;
    threads.start([&] {
      for (unsigned i = 0; i < effort(3'000, 6); ++i) {
        scoped_lock lock(mutex);
        expect(++inside == 1, "nobody else is inside");
        platform::yield();
        --inside;
      }
    });
    threads.start([&] {
      for (unsigned i = 0; i < effort(3'000, 6); ++i) {
        if (!mutex.try_lock()) continue;
        expect(++inside == 1, "nobody else is inside");
        platform::yield();
        --inside;
        mutex.unlock();
      }
    });
    threads.join();
    expect(inside == 0, "everybody left");
  });
}

TEST(PlatformM2, WhatWasWrittenBeforeUnlockIsSeenAfterTheNextLock) {
  run_on_side([](platform::host&) {
    platform::mutex mutex(subject_lock);
    std::uint64_t written[2] = {0, 0};
    team threads;
    threads.start([&] {
      for (unsigned i = 1; i <= effort(3'000, 8); ++i) {
        scoped_lock lock(mutex);
        written[0] = i;
        platform::yield();
        written[1] = i;
      }
    });
    threads.start([&] {
      std::uint64_t last = 0;
      for (unsigned i = 0; i < effort(3'000, 8); ++i) {
        scoped_lock lock(mutex);
        expect(written[0] == written[1], "both halves of the write are seen");
        expect(written[0] >= last, "a write that was seen is not unseen");
        last = written[0];
      }
    });
    threads.join();
    expect(written[1] == effort(3'000, 8), "the last write is seen after the join");
  });
}

TEST(PlatformM3, TryLockAnswersFalseAtOnceWhileAnotherThreadOwns) {
  run_on_side([](platform::host&) {
    platform::mutex mutex(subject_lock);
    bool taken = true;
    mutex.lock();
    {
      // The join is the proof: a try_lock that waited would wait for the unlock below.
      team threads;
      threads.start([&] {
        if (mutex.try_lock())
          mutex.unlock();
        else
          taken = false;
      });
    }
    mutex.unlock();
    expect(!taken, "try_lock says that somebody owns the mutex");
  });
}

TEST(PlatformM3, TryLockTakesAFreeMutex) {
  run_on_side([](platform::host&) {
    platform::mutex mutex(subject_lock);
    bool taken = false;
    if (mutex.try_lock()) {
      taken = true;
      mutex.unlock();
    }
    expect(taken, "a free mutex is taken");
    mutex.lock();
    mutex.unlock();
  });
}

TEST(PlatformM4, SharedOwnersExcludeTheExclusiveOneAndItThem) {
  run_on_side([](platform::host&) {
    platform::shared_mutex mutex(subject_lock);
    platform::atomic<int> readers{0};
    platform::atomic<int> writers{0};
    std::uint64_t written[2] = {0, 0};
    team threads;
    for (unsigned t = 0; t < 2; ++t)
      threads.start([&] {
        for (unsigned i = 0; i < effort(1'000, 4); ++i) {
          read_lock lock(mutex);
          readers.fetch_add(1);
          expect(writers.load() == 0, "no writer beside a reader");
          expect(written[0] == written[1], "a reader sees whole writes");
          readers.fetch_sub(1);
        }
      });
    for (unsigned t = 0; t < 2; ++t)
      threads.start([&] {
        for (unsigned i = 0; i < effort(1'000, 4); ++i) {
          write_lock lock(mutex);
          const int others = writers.fetch_add(1);
          expect(others == 0, "one writer at a time");
          expect(readers.load() == 0, "no reader beside a writer");
          ++written[0];
          platform::yield();
          ++written[1];
          writers.fetch_sub(1);
        }
      });
    threads.join();
    expect(written[0] == 2 * effort(1'000, 4), "no write was lost");
  });
}

TEST(PlatformM4, SharedOwnersAreInsideTogether) {
  run_on_side([](platform::host&) {
    platform::shared_mutex mutex(subject_lock);
    counter inside;
    team threads;
    for (unsigned t = 0; t < 3; ++t)
      threads.start([&] {
        read_lock lock(mutex);
        inside.add();
        inside.wait_for(3);
      });
    threads.join();
    expect(inside.value() == 3, "all of them were inside at once");
  });
}

}  // namespace holdfast::conformance
