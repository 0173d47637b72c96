// Many runs, in several processes.
//
// Why this exists: a bug that needs one schedule in ten thousand is found by making ten thousand. Which runs are made
// depends on the settings alone, never on how many processes share them.
//
// Ownership   Settings are borrowed for the call. Workers are children of the calling process and end with the call.
// Units       Seconds of real time for the campaign; the runs have virtual time.
// Threading   One thread: it forks.
// Failure     `error` in the summary: the campaign could not go on (a plan that makes no sense, no directory for
//             traces); what was counted until then is counted.
#pragma once

#include <sim/campaign/run_one.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

struct campaign_job {
  const scenario* what;
  parameters values;
  /// Of explorations: the faults that the scenario plans are left out.
  bool no_planned_faults = false;
  /// Of explorations: with this fault at its first pass, then at its second, and so on, until no schedule passes it so
  /// often any more.
  std::optional<fault> each = {};
};

/// Counters that rise over the life of a process (transitions taken by models), summed over workers.
struct campaign_gauges {
  std::vector<std::string> names;
  std::function<std::vector<std::uint64_t>()> read;  // as many as there are names
};

/// Moments that runs may reach, see properties/marks.
struct campaign_marks {
  std::vector<std::string_view> ids;
  std::vector<std::string_view> sentences;
  listener* watch = nullptr;         // sees every run; null: none are watched
  std::function<void()> begin = {};  // before a run
  /// After a run: in how many runs of the campaign's process each was reached so far. Valid until the next run.
  std::function<std::span<const std::uint64_t>()> end = {};
};

struct campaign_settings {
  std::vector<campaign_job> jobs;       // run in turn
  std::vector<std::string> strategies;  // each valid for `strategy_for`, used in turn
  std::uint64_t seed_first = 1;
  std::uint64_t seed_last = 1000;  // inclusive
  double seconds_max = 0;          // 0: no bound
  unsigned workers = 1;
  std::uint64_t shard = 1, shards = 1;  // seeds whose number, counted from the first, is `shard` - 1 modulo `shards`
  std::string traces_directory;         // empty: no traces
  std::uint64_t steps_max = run_spec{}.steps_max;
  std::uint64_t violations_max = 100;  // the campaign ends early then
  unsigned run_seconds_max = 120;      // real time of one run; more is a crash with SIGABRT
  /// Instead of seeds, every schedule of each job with at most `preemptions` (none: the one of `fifo`); strategies are
  /// not used.
  bool explore = false;
  std::optional<std::uint32_t> preemptions = 0;
  std::vector<check*> checks;
  campaign_marks marks;
  campaign_gauges gauges;
};

struct campaign_violation {
  std::string invariant;
  std::string message;
  std::string trace;  // path; empty if none could be written
  std::string scenario;
  std::string strategy;
  std::uint64_t seed = 0;
  std::string fault = {};  // of an exploration with faults: which was tried, "nic.register:refuse, pass 2"
};

/// What became of one job of an exploration.
struct explored_job {
  std::size_t job = 0;                  // its index in the settings
  std::uint64_t passes = 0;             // at which `each` was tried and struck
  bool finished = false;                // every schedule was made, and the last exploration had no such pass
  std::vector<std::string> sites = {};  // where a fault could have struck, see fault_plan.hpp
};

struct check_counts {
  std::string_view id;
  std::string_view sentence;
  std::uint64_t evaluated = 0;
  std::uint64_t exercised = 0;
};

struct mark_counts {
  std::string_view id;
  std::string_view sentence;
  std::uint64_t runs = 0;  // in which it was reached
};

/// Of one kind of fault in one scenario, over all its runs.
struct fault_counts {
  std::string scenario;
  std::string name;  // "nic.register:refuse"
  std::uint64_t planned = 0;
  std::uint64_t struck = 0;
  /// At least once, without it, the run would have been another one.
  bool effect = false;
};

struct campaign_summary {
  std::uint64_t runs = 0;
  std::uint64_t schedules = 0;  // of an exploration: runs but those before a search began again
  std::uint64_t steps = 0;
  std::uint64_t choices = 0;
  /// Runs that were to go through trouble to a calm, and those that came to it: in it everything that is owed must end.
  std::uint64_t calm_expected = 0, calm_reached = 0;
  double seconds = 0;
  /// Over the fingerprints of all runs, whichever process made them; 32 hexadecimal digits.
  std::string fingerprint;
  std::vector<campaign_violation> violations;
  std::vector<std::string> determinism_failures;  // one sentence each
  std::vector<check_counts> checks;
  std::vector<fault_counts> faults;  // planned at least once
  std::vector<mark_counts> marks;
  std::vector<explored_job> explored;  // in order of jobs; one that crashed its process may be missing
  std::vector<std::uint64_t> gauges;   // in the order of their names
  /// Every run that was asked for was made.
  bool complete = false;
  std::optional<std::string> error;
};

struct campaign_progress {
  std::uint64_t runs;
  std::uint64_t runs_total;  // 0: bounded by time
  double seconds;
  double seconds_max;  // 0: bounded by runs
  std::size_t violations;
};

/// Told of things as they happen, in the calling process.
struct campaign_observer {
  std::function<void(const campaign_violation&)> on_violation;
  std::function<void(const campaign_progress&)> on_progress;  // about ten times a second
};

campaign_summary run_campaign(const campaign_settings& settings, const campaign_observer& observer);

}  // namespace holdfast::sim
