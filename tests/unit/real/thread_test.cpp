// What the system sees of our threads: their name, their signals, and the error when it has none to give.
#include <holdfast/platform/thread.hpp>

#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/condition_variable.hpp>
#include <holdfast/platform/mutex.hpp>
#include <holdfast/platform/ref_count.hpp>

#include <gtest/gtest.h>

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <type_traits>
#include <vector>

namespace holdfast {
namespace {

// The seam costs nothing where it is crossed often: the types are std's, or hold nothing else.
static_assert(std::is_same_v<platform::atomic<std::uint64_t>, std::atomic<std::uint64_t>>);
static_assert(sizeof(platform::mutex) == sizeof(std::mutex));
static_assert(sizeof(platform::shared_mutex) == sizeof(std::shared_mutex));
static_assert(sizeof(platform::condition_variable) == sizeof(std::condition_variable));
static_assert(sizeof(platform::ref_count) == sizeof(std::uint32_t));

TEST(RealThread, CarriesItsNameAsFarAsTheSystemShowsIt) {
  for (const auto& [given, shown] : std::vector<std::pair<std::string, std::string>>{
           {"progress", "progress"}, {"a-name-of-more-than-15", "a-name-of-more-"}, {"", ""}}) {
    std::string seen;
    auto started = platform::thread::start(given, [&] {
      char name[32] = {};
      pthread_getname_np(pthread_self(), name, sizeof name);
      seen = name;
    });
    ASSERT_TRUE(started.has_value());
    started->join();
    EXPECT_EQ(seen, shown);
  }
}

TEST(RealThread, BlocksAsynchronousSignalsAndLeavesTheOthersOpen) {
  sigset_t before;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &before), 0);
  sigset_t inside;
  sigemptyset(&inside);
  auto started = platform::thread::start("signals", [&] { pthread_sigmask(SIG_SETMASK, nullptr, &inside); });
  ASSERT_TRUE(started.has_value());
  started->join();
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGPIPE, SIGALRM, SIGIO})
    EXPECT_TRUE(sigismember(&inside, number)) << number;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    EXPECT_FALSE(sigismember(&inside, number)) << number;
  sigset_t after;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &after), 0);
  for (int number = 1; number < SIGRTMIN; ++number)
    EXPECT_EQ(sigismember(&before, number), sigismember(&after, number)) << "the caller's mask changed: " << number;
}

TEST(RealThread, WhatItsBodyOwnedIsGoneWhenItIsJoined) {
  std::atomic<bool> destroyed{false};
  struct owned {
    std::atomic<bool>* flag;
    explicit owned(std::atomic<bool>* f) : flag(f) {}
    owned(owned&& other) noexcept : flag(std::exchange(other.flag, nullptr)) {}
    ~owned() {
      if (flag != nullptr) *flag = true;
    }
  };
  auto started = platform::thread::start("owner", [thing = owned(&destroyed)] {});
  ASSERT_TRUE(started.has_value());
  started->join();
  EXPECT_TRUE(destroyed);
}

TEST(RealThread, WithoutMemoryForAStackTheAnswerIsAnErrorNumber) {
#if defined(HOLDFAST_ASAN) || defined(HOLDFAST_TSAN)
  GTEST_SKIP() << "sanitizers reserve more address space than any limit";
#endif
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit stack{std::size_t{1} << 40, RLIM_INFINITY};
    ::setrlimit(RLIMIT_STACK, &stack);
    const rlimit space{std::size_t{1} << 30, std::size_t{1} << 30};
    if (::setrlimit(RLIMIT_AS, &space) != 0) ::_exit(1);
    std::vector<platform::thread> started;
    for (unsigned i = 0; i < 1'000; ++i) {
      auto one = platform::thread::start("greedy", [] { ::pause(); });
      if (!one) ::_exit(one.error() == EAGAIN ? 0 : 2);
      started.push_back(std::move(*one));
    }
    ::_exit(3);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace holdfast
