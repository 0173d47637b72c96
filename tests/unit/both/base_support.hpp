// What the tests of base need: an environment for tasks, and completions that a test waits for.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/frame_pool.hpp>
#include <holdfast/base/task.hpp>
#include <holdfast/telemetry/event_log.hpp>
#include <tests/conformance/platform/helpers.hpp>

#include <optional>
#include <utility>

namespace holdfast::base_test {

using conformance::counter;
using conformance::effort;
using conformance::expect;
using conformance::millisecond;
using conformance::run_on_side;
using conformance::stop_on_side;
using conformance::team;

/// A runtime's worth of surroundings.
struct surroundings {
  explicit surroundings(platform::host& on)
      : host(on), log(on.clock()), environment(on.executor(), on.clock(), log, frames) {}
  task_context context(const char* operation = "test", cancellation* asked = nullptr) const noexcept {
    return task_context(environment, operation, asked);
  }
  platform::time_point in(platform::duration d) const noexcept { return host.clock().now() + d; }
  /// Long enough that only a hang reaches it.
  platform::time_point patience() const noexcept { return in(platform::duration(60'000'000'000)); }

  platform::host& host;
  event_log log;
  frame_pool frames;
  task_environment environment;
};

/// Keeps how a root ended until the test asks.
template <class T>
class kept_completion final : public task_completion<T> {
 public:
  void completed(T value) noexcept override {
    value_.emplace(std::move(value));
    ended_.add();
  }
  void dropped() noexcept override {
    dropped_ = true;
    ended_.add();
  }
  /// Blocks until the root ended.
  T& wait() {
    ended_.wait_for(1);
    expect(ended_.value() == 1, "a root ends once");
    expect(value_.has_value(), "the root was not dropped");
    return *value_;
  }
  bool wait_dropped() {
    ended_.wait_for(1);
    return dropped_;
  }
  bool ended() { return ended_.value() != 0; }

 private:
  counter ended_;
  std::optional<T> value_;
  bool dropped_ = false;
};

}  // namespace holdfast::base_test
