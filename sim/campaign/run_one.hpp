// One run of one scenario, from a plan to its outcome.
//
// Why this exists: campaign, exploration, replay and shrinking make runs in exactly the same way; they differ only in
// where plan and choices come from.
//
// Ownership   Borrows everything it is given, for the call.
// Units       Virtual nanoseconds.
// Threading   One OS thread; one run at a time in a process.
// Failure     `error`: the plan makes no sense to the scenario; nothing was run then.
#pragma once

#include <sim/scenarios/scenario.hpp>

#include <cstdint>
#include <expected>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace holdfast::sim {

struct run_spec {
  const scenario* what = nullptr;
  parameters values;  // complete, see `complete_parameters`
  std::uint64_t seed = 1;
  /// More scheduling points are a livelock.
  std::uint64_t steps_max = world_settings{}.steps_max;
};

struct run_observers {
  std::span<check* const> checks;
  std::span<listener* const> listeners;
  bool fingerprint = false;
  bool keep_indices = false;                                  // also kept of every violating run
  std::set<std::string, std::less<>>* fault_sites = nullptr;  // where faults could have struck, see fault_plan.hpp
};

struct run_outcome {
  std::optional<violation> wrong;
  bool cut = false;  // its strategy wanted no more of it; nothing was judged at its end
  std::uint64_t steps = 0;
  std::uint64_t choices = 0;
  std::uint64_t events = 0;
  std::int64_t time_ns = 0;
  std::string fingerprint;            // if asked for, and of every violating run
  std::vector<std::uint8_t> indices;  // choices as LEB128
  std::vector<std::uint64_t> struck;  // how often each fault of the plan struck, in its order
  bool calm_expected = false;         // the run was to go through trouble to a calm
  bool calm_reached = false;          // and did
  std::optional<std::string> error;
};

/// Runs `what` of `spec` with the ops and faults of `plan`.
run_outcome run_one(const run_spec& spec, const plan& plan, strategy& chooser, const run_observers& observers);

/// Every parameter of `what`: the given value, or the initial one. An error names an unknown parameter or a value out
/// of range, and the range.
std::expected<parameters, std::string> complete_parameters(const scenario& what, const parameters& given);

/// The same run, by all that a run shows.
bool same_outcome(const run_outcome& a, const run_outcome& b);

}  // namespace holdfast::sim
