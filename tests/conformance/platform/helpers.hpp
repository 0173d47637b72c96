// What several files of the suite need: made of the platform itself, so that it works on both sides.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/lock.hpp>
#include <tests/conformance/platform/harness.hpp>

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::conformance {

// Helpers may be used while a subject is held, never the other way round.
inline constexpr lock_class subject_lock{700, false, "conformance subject"};
inline constexpr lock_class helper_lock{1000, true, "conformance helper"};

inline constexpr platform::duration millisecond{1'000'000};

/// Threads that are joined when the scope ends.
class team {
 public:
  team() = default;
  team(const team&) = delete;
  team& operator=(const team&) = delete;
  ~team() { join(); }
  void start(std::move_only_function<void()> body) {
    auto started = platform::thread::start("member", std::move(body));
    expect(started.has_value(), "a thread can be started");
    if (started) members_.push_back(std::move(*started));
  }
  void join() {
    for (auto& member : members_) member.join();
    members_.clear();
  }

 private:
  std::vector<platform::thread> members_;
};

/// A number that threads add to and wait for.
class counter {
 public:
  void add(std::uint64_t change = 1) {
    scoped_lock lock(mutex_);
    value_ += change;
    changed_.notify_all();
  }
  void wait_for(std::uint64_t at_least) {
    scoped_lock lock(mutex_);
    while (value_ < at_least) changed_.wait(mutex_);
  }
  std::uint64_t value() {
    scoped_lock lock(mutex_);
    return value_;
  }

 private:
  platform::mutex mutex_{helper_lock};
  platform::condition_variable changed_;
  std::uint64_t value_ = 0;
};

}  // namespace holdfast::conformance
