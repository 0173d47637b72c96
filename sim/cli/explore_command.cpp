#include <sim/campaign/child.hpp>
#include <sim/campaign/signals.hpp>
#include <sim/cli/commands.hpp>
#include <sim/cli/inputs.hpp>
#include <sim/cli/output.hpp>
#include <sim/faults/fault_plan.hpp>
#include <sim/kernel/strategies/fifo.hpp>

#include <algorithm>
#include <cstdio>

namespace holdfast::sim {

namespace {

// Passed more often than this, a point is tried at its first so many passes.
constexpr std::uint64_t passes_max = 200;
// For kinds that take a time; long against a message's way, short against a deadline.
constexpr std::int64_t fault_value_ns = 1'000'000;

bool takes_time(std::string_view kind) {
  return kind == "delay" || kind == "slow" || kind == "stuck" || kind == "both" || kind == "one_way" || kind == "pause";
}

// How often a run without further faults passes each point; in a child, so that this process makes no run.
class pass_counter final : public listener {
 public:
  void on_event(world& w, const logged_event&) override { count(w); }
  void on_choice(world& w, const choice_point&, std::uint32_t) override { count(w); }
  std::vector<std::uint64_t> passes = std::vector<std::uint64_t>(all_fault_points().size());

 private:
  void count(world& w) {
    for (std::size_t i = 0; i < passes.size(); ++i) {
      passes[i] = std::max(passes[i], fault_plan::of(w).passes(all_fault_points()[i].name));
    }
  }
};

std::vector<std::uint64_t> count_passes(const campaign_job& job, std::uint64_t seed) {
  const child_answer answer = in_child([&] {
    fifo_strategy fifo;
    pass_counter counter;
    listener* const listening[] = {&counter};
    const run_spec spec{job.what, job.values, seed};
    run_one(spec, job.what->generate(job.values, seed), fifo, {{}, listening, false, false});
    return nlohmann::json(counter.passes).dump();
  });
  // A run that crashes without faults is found by the exploration without faults.
  if (!answer.death.empty()) return std::vector<std::uint64_t>(all_fault_points().size());
  return nlohmann::json::parse(answer.text).get<std::vector<std::uint64_t>>();
}

void add_faults(std::vector<campaign_job>& jobs, std::uint64_t seed) {
  const campaign_job plain = jobs.front();
  const std::vector<std::uint64_t> passes = count_passes(plain, seed);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const fault_point& point = all_fault_points()[i];
    for (std::string_view kinds = point.kinds;;) {
      const std::string kind(kinds.substr(0, kinds.find('|')));
      for (std::uint64_t nth = 1; kind != "*" && nth <= std::min(passes[i], passes_max); ++nth) {
        campaign_job job = plain;
        job.faults.push_back({std::string(point.name), "", nth, 1, kind, takes_time(kind) ? fault_value_ns : 0});
        jobs.push_back(std::move(job));
      }
      if (kind.size() == kinds.size()) break;
      kinds.remove_prefix(kind.size() + 1);
    }
  }
}

}  // namespace

int explore_command(const arguments& given) {
  campaign_settings settings = base_settings();
  const scenario& what = scenario_named(given.text("SCENARIO"));
  settings.jobs = jobs_for({&what}, given.settings());
  settings.explore = true;
  settings.preemptions = static_cast<std::uint32_t>(given.count("--preemptions"));
  settings.seed_first = settings.seed_last = given.count("--seed");
  settings.workers = static_cast<unsigned>(given.count("--jobs"));
  settings.steps_max = given.count("--steps-max");
  settings.traces_directory = given.text("--traces");
  settings.run_seconds_max = static_cast<unsigned>(given.duration_ns("--run-limit") / 1'000'000'000);
  if (given.given("--faults")) add_faults(settings.jobs, settings.seed_first);

  const bool json = given.flag("--json");
  progress_bar bar(true);
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
  const std::vector<std::string> inert = inert_of(s, 1);
  if (json) {
    std::puts(dump(summary_json(settings, s, {}, inert)).c_str());
  } else {
    for (const std::string& sentence : s.determinism_failures) std::printf("determinism: %s\n", sentence.c_str());
    const char* how = s.complete              ? "that is all of them"
                      : !s.violations.empty() ? "it ended at a violation"
                      : stop_requested()      ? "it was stopped"
                                              : "it did not finish";
    std::printf("explore: %llu schedules with at most %u preemptions, %llu steps, %zu violations; %s\n",
                static_cast<unsigned long long>(s.runs), settings.preemptions, static_cast<unsigned long long>(s.steps),
                s.violations.size(), how);
  }
  if (s.error) {
    std::fprintf(stderr, "holdfast-sim: %s\n", s.error->c_str());
    return exit_usage;
  }
  if (!s.violations.empty()) return exit_violation;
  return s.determinism_failures.empty() ? exit_fine : exit_not_deterministic;
}

}  // namespace holdfast::sim
