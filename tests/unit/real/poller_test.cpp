// What a poller meets on a real system: interrupted sleeps, descriptors whose other end went away, many of them.
#include <holdfast/platform/poller.hpp>

#include <holdfast/platform/host.hpp>
#include <holdfast/platform/thread.hpp>

#include <gtest/gtest.h>

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

using platform::wake_cause;

std::atomic<unsigned> interruptions{0};

TEST(RealPoller, ASignalDoesNotEndTheWait) {
  struct sigaction counting{};
  struct sigaction before{};
  counting.sa_handler = [](int) { interruptions.fetch_add(1); };
  ASSERT_EQ(::sigaction(SIGUSR1, &counting, &before), 0);  // without SA_RESTART
  platform::host host;
  auto poller = platform::poller::create(host);
  ASSERT_TRUE(poller.has_value());
  std::atomic<bool> done{false};
  auto sender = platform::thread::start("sender", [&, sleeper = pthread_self()] {
    while (!done) {
      pthread_kill(sleeper, SIGUSR1);
      platform::yield();
    }
  });
  ASSERT_TRUE(sender.has_value());
  const auto deadline = host.clock().now() + std::chrono::milliseconds(30);
  const auto cause = poller->wait(deadline);
  const auto now = host.clock().now();
  done = true;
  sender->join();
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
  EXPECT_TRUE(cause == wake_cause::deadline);
  EXPECT_GE(now, deadline);
  EXPECT_GT(interruptions.load(), 0u);
}

TEST(RealPoller, ADescriptorWhoseOtherEndClosedEndsTheWait) {
  platform::host host;
  auto poller = platform::poller::create(host);
  ASSERT_TRUE(poller.has_value());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_TRUE(poller->add(ends[0]));
  ::close(ends[1]);
  EXPECT_TRUE(poller->wait(platform::never) & wake_cause::descriptor);
  ::close(ends[0]);
}

TEST(RealPoller, AnyOfManyDescriptorsEndsTheWait) {
  platform::host host;
  auto poller = platform::poller::create(host);
  ASSERT_TRUE(poller.has_value());
  std::vector<int> watched;
  for (unsigned i = 0; i < 100; ++i) {
    watched.push_back(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    ASSERT_GE(watched.back(), 0);
    ASSERT_TRUE(poller->add(watched.back()));
  }
  for (const int number : watched) {
    ASSERT_EQ(::eventfd_write(number, 1), 0);
    EXPECT_TRUE(poller->wait(platform::never) == wake_cause::descriptor);
    eventfd_t count = 0;
    ASSERT_EQ(::eventfd_read(number, &count), 0);
    EXPECT_TRUE(poller->wait(platform::time_point::min()) == wake_cause::deadline);
  }
  for (const int number : watched) ::close(number);
}

TEST(RealPoller, ADrainForgetsWhatWasWokenAndNothingThatComesAfter) {
  platform::host host;
  auto poller = platform::poller::create(host);
  ASSERT_TRUE(poller.has_value());
  const auto soon = [&host] { return host.clock().now() + std::chrono::milliseconds(1); };
  poller->wake();
  poller->drain_wakes();
  EXPECT_TRUE(poller->wait(soon()) == wake_cause::deadline) << "drained without a wait between";
  poller->wake();
  EXPECT_TRUE(poller->wait(soon()) == wake_cause::woken);
  EXPECT_TRUE(poller->wait(soon()) == wake_cause::woken) << "pending until drained";
  poller->drain_wakes();
  EXPECT_TRUE(poller->wait(soon()) == wake_cause::deadline);
  auto moved = std::move(*poller);
  moved.wake();
  EXPECT_TRUE(moved.wait(soon()) == wake_cause::woken);

  // Each wake is asked for after the one before it was drained: one that is lost ends in the deadline.
  std::atomic<unsigned> asked{0};
  constexpr unsigned times = 5'000;
  moved.drain_wakes();
  auto waker = platform::thread::start("waker", [&] {
    for (unsigned i = 0; i < times; ++i) {
      while (asked.load() <= i) platform::yield();
      moved.wake();
    }
  });
  ASSERT_TRUE(waker.has_value());
  unsigned lost = 0;
  for (unsigned i = 0; i < times; ++i) {
    asked.store(i + 1);
    if (!(moved.wait(host.clock().now() + std::chrono::seconds(10)) & wake_cause::woken)) ++lost;
    moved.drain_wakes();
  }
  waker->join();
  EXPECT_EQ(lost, 0u);
}

TEST(RealPoller, EachPollerClosesWhatItOpened) {
  platform::host host;
  const int probe = ::dup(0);
  ASSERT_GE(probe, 0);
  ::close(probe);
  for (unsigned i = 0; i < 200; ++i) {
    auto first = platform::poller::create(host);
    auto second = platform::poller::create(host);
    ASSERT_TRUE(first.has_value() && second.has_value());
    *first = std::move(*second);
    platform::poller third(std::move(*first));
    third.wake();
    EXPECT_TRUE(third.wait(platform::never) & wake_cause::woken);
  }
  const int after = ::dup(0);
  EXPECT_EQ(after, probe) << "descriptors were left open";
  ::close(after);
}

}  // namespace
}  // namespace holdfast
