// One process of a campaign: takes runs, makes them, tells what it found.
//
// Why this exists: counters lie in memory that survives the worker, findings go through a pipe, so that a worker that
// dies takes nothing with it but the run that killed it.
//
// Ownership   Everything is borrowed from the campaign.
// Threading   `work` runs in a child with one thread; the counters are read by the parent meanwhile.
// Failure     A finding of kind `error` ends the campaign.
#pragma once

#include <sim/campaign/campaign.hpp>
#include <sim/campaign/shared_block.hpp>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace holdfast::sim {

/// Which run number `unit` of a campaign is. In an exploration a unit is a whole job.
struct campaign_unit {
  const campaign_job* job;
  std::size_t strategy;
  std::uint64_t seed;
  bool twice;
};

class campaign_board {
 public:
  static constexpr std::size_t forced_bytes_max = 1 << 16;

  struct common {
    std::atomic<std::uint64_t> next_unit;
    std::atomic<std::uint64_t> violations;
    std::atomic<bool> stop;
  };
  struct slot {
    std::atomic<std::uint64_t> unit;    // number + 1 of the unit being worked on; 0: none
    std::atomic<std::uint64_t> serial;  // rises with every run
    std::atomic<std::uint64_t> runs, steps, choices;
    std::atomic<std::uint64_t> calm_expected, calm_reached;  // runs
    // Of an exploration: runs but those before a search began again.
    std::atomic<std::uint64_t> schedules;
    // Sum over the fingerprints of the runs, each mixed with the run's number: the order does not matter.
    std::atomic<std::uint64_t> fingerprint[2];
    // Of an exploration: the choices that the current run is forced to make, LEB128. `forced_max` + 1: too many.
    std::atomic<std::uint64_t> forced_bytes;
    std::uint8_t forced[forced_bytes_max];
    // Of an exploration with a fault at each pass: the pass. After a death: the unit (number + 1) to go on with.
    std::atomic<std::uint64_t> pass;
    std::atomic<std::uint64_t> resume;
  };

  explicit campaign_board(const campaign_settings& settings);

  common& all() const noexcept { return *reinterpret_cast<common*>(block_.start()); }
  slot& of(unsigned worker) const noexcept;
  /// Pairs of counters of a worker: for each check evaluated and exercised, for each fault of each scenario (see
  /// `fault_index`) planned and struck. Then, for each mark, the runs that reached it.
  std::span<std::atomic<std::uint64_t>> counters(unsigned worker) const noexcept;
  /// One for each fault of each scenario: nonzero if it had an effect.
  std::span<std::atomic<std::uint8_t>> effects() const noexcept;
  std::size_t fault_index(const scenario* of, const fault& f) const;
  std::size_t first_mark() const noexcept { return 2 * (settings.checks.size() + fault_count()); }
  std::size_t counter_count() const noexcept { return first_mark() + settings.marks.ids.size(); }
  std::size_t fault_count() const noexcept { return scenarios.size() * fault_names.size(); }

  const campaign_settings& settings;
  /// "nic.register:refuse", in order of points.
  const std::vector<std::string> fault_names;
  const std::vector<const scenario*> scenarios;  // of the jobs, each once
  /// 0: without end.
  const std::uint64_t units;

  campaign_unit unit(std::uint64_t number) const;
  run_spec spec(const campaign_unit& u) const { return {u.job->what, u.job->values, u.seed, settings.steps_max}; }
  /// `pass`: where the fault of an exploration strikes, from 1.
  plan plan_for(const campaign_unit& u, std::uint64_t pass) const;
  /// What is added to the seed to name a run of an exploration with faults; "" otherwise.
  std::string fault_text(const campaign_unit& u, std::uint64_t pass) const;
  /// For `make_strategy`.
  std::string strategy_text(const campaign_unit& u) const;

 private:
  std::size_t common_bytes_;
  std::size_t slot_bytes_;
  shared_block block_;
};

/// "PM-I5", "PM-I5 heap:pinned.span, pass 2": what the name of a trace says was wrong.
inline std::string trace_reason(const std::string& invariant, const std::string& fault_text) {
  return fault_text.empty() ? invariant : invariant + ' ' + fault_text;
}

/// What a worker tells, one JSON object a line.
struct finding {
  enum class kind : std::uint8_t { violation, determinism, error, explored, gauges };
  kind is;
  campaign_violation violated = {};
  std::string sentence = {};  // of determinism and error
  explored_job explored = {};
  std::vector<std::uint64_t> gauges = {};
};
std::string to_line(const finding& f);
finding finding_from(const std::string& line);

/// Works until nothing is left or the board says stop. Findings are written to `pipe`.
void work(const campaign_board& board, unsigned worker, int pipe);

}  // namespace holdfast::sim
