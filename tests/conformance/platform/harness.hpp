// How a clause of the platform contract is run on whichever side this program was built for.
//
// Why this exists: the suite is one text. On the real side a body runs on the calling thread; on the simulated side
// it runs on a fiber, in one world for each of several seeds, where neither a test framework's macros nor a failed
// assertion's exception may be used. So bodies say `expect`, and what failed is told after the run.
//
// Ownership   The host belongs to the harness and lives as long as the body runs; a body leaves nothing running.
// Threading   `expect` is callable from any thread or fiber that the body started.
// Failure     A body that never ends is stopped by the time limit of the test, or as a deadlock by the simulator.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform_contract.hpp>

#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>

namespace holdfast::conformance {

/// Records a failure unless `held`. The sentence says what should have been so.
void expect(bool held, std::string_view sentence, std::source_location where = std::source_location::current());

/// From here on time moves only while nobody can run. For tests with deadlines that a slow thread must not reach: on
/// the simulated side threads may otherwise be arbitrarily slow. Does nothing on the real side.
void keep_time_calm();

/// Runs `body`: once with real threads, or in a world for each seed. It starts from nothing each time.
void run_on_side(std::move_only_function<void(platform::host&)> body, unsigned executor_threads = 1);

struct stop_seen {
  /// The body did not come to its end, because the process (or the simulated one) was stopped.
  bool stopped = false;
  /// What was said then.
  std::string said;
};
/// As `run_on_side`, for a body that should stop the process. One process, or one world, is spent.
stop_seen stop_on_side(std::move_only_function<void(platform::host&)> body);

/// How often a race is tried within one body: often with real threads, seldom where seeds do the repeating.
unsigned effort(unsigned real, unsigned simulated) noexcept;

/// A descriptor that a poller of `host` can watch, not readable at first.
class watched_descriptor {
 public:
  virtual ~watched_descriptor() = default;
  virtual int number() const noexcept = 0;
  virtual void make_readable() = 0;
  virtual void make_unreadable() = 0;
};
std::unique_ptr<watched_descriptor> make_descriptor(platform::host& host);

}  // namespace holdfast::conformance
