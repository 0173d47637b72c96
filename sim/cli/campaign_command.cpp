#include <sim/campaign/signals.hpp>
#include <sim/cli/commands.hpp>
#include <sim/cli/inputs.hpp>
#include <sim/cli/output.hpp>

#include <cstdio>
#include <limits>

namespace holdfast::sim {

namespace {

int exit_code_of(const campaign_summary& s, std::size_t not_exercised) {
  if (!s.violations.empty()) return exit_violation;
  if (!s.determinism_failures.empty()) return exit_not_deterministic;
  return not_exercised != 0 ? exit_not_exercised : exit_fine;
}

void print_holes(const campaign_summary& s, bool promised, const std::vector<std::string>& inert) {
  if (promised) {
    for (const check_counts& c : s.checks) {
      if (c.exercised != 0) continue;
      std::printf("never exercised: invariant %s: %s\n", std::string(c.id).c_str(), std::string(c.sentence).c_str());
    }
    for (const mark_counts& m : s.marks) {
      if (m.runs != 0) continue;
      std::printf("never reached: mark %s: %s\n", std::string(m.id).c_str(), std::string(m.sentence).c_str());
    }
  }
  for (const std::string& sentence : inert) std::printf("inert fault: %s\n", sentence.c_str());
}

}  // namespace

int campaign_command(const arguments& given) {
  campaign_settings settings = base_settings();
  std::vector<const scenario*> scenarios;
  for (const std::string& name : given.texts("SCENARIO")) scenarios.push_back(&scenario_named(name));
  const bool everything = scenarios.empty();
  if (everything) scenarios = all_scenarios();
  settings.jobs = jobs_for(scenarios, given.settings());
  settings.strategies = given.texts("--strategy");
  for (const std::string& text : settings.strategies) {
    if (text.starts_with("exhaustive")) throw usage_error{"--strategy: a campaign does not search; use explore"};
  }
  std::tie(settings.seed_first, settings.seed_last) = given.pair("--seeds");
  if (given.given("--for")) {
    settings.seconds_max = static_cast<double>(given.duration_ns("--for")) / 1e9;
    if (!given.given("--seeds")) settings.seed_last = std::numeric_limits<std::uint64_t>::max();
  }
  settings.workers = static_cast<unsigned>(given.count("--jobs"));
  std::tie(settings.shard, settings.shards) = given.pair("--shard");
  settings.traces_directory = given.text("--traces");
  settings.steps_max = given.count("--steps-max");
  settings.violations_max = given.count("--stop-after");
  settings.run_seconds_max = static_cast<unsigned>(given.duration_ns("--run-limit") / 1'000'000'000);

  const bool json = given.flag("--json");
  const bool quiet = given.flag("--quiet");
  progress_bar bar(!quiet);
  campaign_observer observer;
  observer.on_violation = [&](const campaign_violation& v) {
    bar.clear();
    if (json) return;
    std::fputs(violation_text(given, v).c_str(), stdout);
    std::fflush(stdout);
  };
  observer.on_progress = [&bar](const campaign_progress& p) { bar.show(p); };
  const campaign_summary s = run_campaign(settings, observer);
  bar.clear();

  // A part of the scenarios, or of the time, promises nothing about the whole.
  const bool promised = everything && s.complete && settings.shards == 1;
  const std::vector<std::string> unreached = promised ? unreached_of(s) : std::vector<std::string>{};
  // What a scenario plans is promised wherever it runs often enough.
  const std::vector<std::string> inert = inert_of(s, audit_planned_min);
  if (json) {
    std::puts(dump(summary_json(settings, s, unreached, inert)).c_str());
  } else {
    for (const std::string& sentence : s.determinism_failures) std::printf("determinism: %s\n", sentence.c_str());
    print_holes(s, promised, inert);
    if (s.calm_expected != 0 && !quiet) {
      std::printf("calm: %llu of %llu runs went through their trouble to a calm\n",
                  static_cast<unsigned long long>(s.calm_reached), static_cast<unsigned long long>(s.calm_expected));
    }
    if (!quiet && stop_requested()) std::puts("stopped on request");
  }
  if (s.error) std::fprintf(stderr, "holdfast-sim: %s\n", s.error->c_str());
  if (!json) {
    std::printf("campaign: %llu runs, %llu steps, %zu violations, %zu unreached, %zu determinism failures\n",
                static_cast<unsigned long long>(s.runs), static_cast<unsigned long long>(s.steps), s.violations.size(),
                unreached.size(), s.determinism_failures.size());
  }
  if (s.error) return exit_usage;
  return exit_code_of(s, unreached.size() + inert.size());
}

}  // namespace holdfast::sim
