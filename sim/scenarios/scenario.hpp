// A scenario: a generator of workload steps, and an interpreter that executes them.
//
// Why this exists: written, shrunken, recorded and generated traces must all run the same way. So a workload is
// data (a list of ops); the generator only makes such a list from a seed.
//
// Ownership   The registry owns scenarios for the life of the process.
// Threading   One OS thread; `generate` and `start` run in kernel scope, op bodies on fibers.
// Failure     A wrong parameter or op is an error sentence, never an assertion.
#pragma once

#include <sim/kernel/world.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

/// One executed step: `who` is "host/fiber" ("b/app-1"); steps of one `who` run in order, different ones concurrently.
struct op {
  std::string who;
  std::string what;
  /// Arguments by name; numbers and strings only. Sizes in bytes, times in nanoseconds.
  std::map<std::string, std::int64_t> numbers;
  std::map<std::string, std::string> words;
  std::int64_t number(const std::string& key, std::int64_t otherwise = 0) const {
    const auto found = numbers.find(key);
    return found == numbers.end() ? otherwise : found->second;
  }
};

/// One planned fault: the `nth` time (from 1) that point `where` is passed on `host` (empty: any), for `times` passes.
struct fault {
  std::string where;  // "nic.register", "heap", "suspension", ... see `holdfast-sim list faults`
  std::string host;
  std::uint64_t nth = 1;
  std::uint64_t times = 1;
  std::string what;  // "refuse", "lie", "delay", "never", "cancel", ...
  std::int64_t value = 0;
};

struct parameter {
  std::string name;
  std::string text;
  std::int64_t initial;
  std::int64_t low, high;  // inclusive
};

struct plan {
  std::vector<op> ops;
  std::vector<fault> faults;
};

using parameters = std::map<std::string, std::int64_t>;

class scenario {
 public:
  virtual ~scenario() = default;
  virtual std::string_view name() const noexcept = 0;
  virtual std::string_view text() const noexcept = 0;
  /// Small enough for `explore` to finish.
  virtual bool small() const noexcept { return false; }
  virtual std::vector<parameter> describe_parameters() const { return {}; }
  /// Ops and faults of a run. Depends on the arguments only.
  virtual plan generate(const parameters& p, std::uint64_t seed) const = 0;
  /// Builds hosts and spawns the fibers that execute `plan.ops`. Called once, before `world::run`.
  /// The answer owns what the run needs and is destroyed after it. An error sentence if an op makes no sense.
  virtual std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                                  const plan& what) const = 0;
};

/// Registration by static object, for scenarios in files of their own.
struct scenario_registrar {
  explicit scenario_registrar(std::unique_ptr<scenario> s);
};
/// All scenarios in order of name, the built-in ones included.
std::vector<const scenario*> all_scenarios();
const scenario* find_scenario(std::string_view name);
void add_scenario(std::unique_ptr<scenario> s);
/// Defined in sim/scenarios/builtin.cpp: registers every scenario of this tree, once.
void add_builtin_scenarios();

}  // namespace holdfast::sim
