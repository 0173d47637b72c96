#include <sim/campaign/signals.hpp>
#include <sim/cli/commands.hpp>
#include <sim/cli/inputs.hpp>
#include <sim/cli/output.hpp>
#include <sim/faults/fault_plan.hpp>

#include <algorithm>
#include <cstdio>
#include <set>
#include <span>

namespace holdfast::sim {

namespace {

// For kinds that take a time: long against a message's way, short against a deadline.
constexpr std::int64_t fault_value_ns = 1'000'000;
// For kinds that count looks: enough to be looked at again, few enough to end.
constexpr std::int64_t fault_value_looks = 8;

constexpr std::string_view timed_kinds[] = {"both",    "delay",           "delayed",     "indeterminate", "late",
                                            "one_way", "orphaned_failed", "orphaned_ok", "pause",         "restart",
                                            "slow"};

std::int64_t value_of(std::string_view kind) {
  if (kind == "stuck") return fault_value_looks;
  return std::ranges::find(timed_kinds, kind) != std::end(timed_kinds) ? fault_value_ns : 0;
}

std::vector<std::string> kinds_of(const fault_point& point) {
  std::vector<std::string> out;
  for (std::string_view kinds = point.kinds;;) {
    const std::string_view kind = kinds.substr(0, kinds.find('|'));
    out.emplace_back(kind);
    if (kind.size() == kinds.size()) return out;
    kinds.remove_prefix(kind.size() + 1);
  }
}

// Everything that was made of one scenario: one exploration, or several one after the other.
class exploration {
 public:
  exploration(campaign_settings settings, const campaign_observer& observer)
      : settings_(std::move(settings)), observer_(observer) {}

  // Without faults, or with those that the scenario plans.
  void plain(campaign_job job) { make({std::move(job)}); }

  // Without any, then with every kind at every point that a run passed, one at a time, from its first pass on. Points and
  // sites are learned from the runs, also from those in which something else failed.
  void with_each_fault(const campaign_job& scenario) {
    campaign_job plain_job = scenario;
    plain_job.no_planned_faults = true;
    std::set<std::string> known;
    for (std::vector<campaign_job> jobs = {plain_job}; !jobs.empty() && !stop_requested() && !total.error;) {
      make(std::move(jobs));
      jobs.clear();
      for (const std::string& site : sites_) {
        if (known.insert(site).second) add_faults_at(site, plain_job, jobs);
      }
      if (stop_requested() && !jobs.empty()) total.complete = false;
    }
  }

  struct tried_fault {
    std::string point, kind;
    std::uint64_t passes;
    bool finished;
  };

  campaign_summary total;
  std::vector<tried_fault> tried;  // those that were passed at least once

 private:
  static void add_faults_at(const std::string& site, campaign_job job, std::vector<campaign_job>& jobs) {
    const std::size_t colon = site.find(':');
    const std::string name = site.substr(0, colon);
    const std::span<const fault_point> points = all_fault_points();
    const auto point = std::ranges::find(points, name, &fault_point::name);
    const std::vector<std::string> kinds =
        colon == site.npos ? kinds_of(*point) : std::vector<std::string>{site.substr(colon + 1)};
    for (const std::string& kind : kinds) {
      job.each = fault{name, "", 1, 1, kind, value_of(kind)};
      jobs.push_back(job);
    }
  }

  void make(std::vector<campaign_job> jobs) {
    settings_.jobs = std::move(jobs);
    campaign_summary s = run_campaign(settings_, observer_);
    for (const explored_job& one : s.explored) {
      sites_.insert(one.sites.begin(), one.sites.end());
      const std::optional<fault>& f = settings_.jobs[one.job].each;
      if (f && one.passes != 0) tried.push_back({f->where, f->what, one.passes, one.finished});
    }
    if (first_) {
      first_ = false;
      total = std::move(s);
    } else {
      add(s);
    }
  }

  void add(campaign_summary& s) {
    total.runs += s.runs;
    total.schedules += s.schedules;
    total.steps += s.steps;
    total.choices += s.choices;
    total.calm_expected += s.calm_expected;
    total.calm_reached += s.calm_reached;
    total.seconds += s.seconds;
    total.complete = total.complete && s.complete;
    if (!total.error) total.error = s.error;
    total.fingerprint = joined(total.fingerprint, s.fingerprint);
    std::ranges::move(s.violations, std::back_inserter(total.violations));
    std::ranges::move(s.determinism_failures, std::back_inserter(total.determinism_failures));
    for (std::size_t i = 0; i < s.checks.size(); ++i) {
      total.checks[i].evaluated += s.checks[i].evaluated;
      total.checks[i].exercised += s.checks[i].exercised;
    }
    for (std::size_t i = 0; i < s.marks.size(); ++i) total.marks[i].runs += s.marks[i].runs;
    for (std::size_t i = 0; i < s.gauges.size(); ++i) total.gauges[i] += s.gauges[i];
    for (const fault_counts& f : s.faults) {
      const auto known = std::ranges::find(total.faults, f.name, &fault_counts::name);
      if (known == total.faults.end()) {
        total.faults.push_back(f);
        continue;
      }
      known->planned += f.planned;
      known->struck += f.struck;
      known->effect = known->effect || f.effect;
    }
  }

  // Both are sums over runs.
  static std::string joined(const std::string& a, const std::string& b) {
    char digits[33];
    for (std::size_t half = 0; half < 2; ++half) {
      const auto part = [half](const std::string& text) {
        return std::stoull(text.substr(16 * half, 16), nullptr, 16);
      };
      std::snprintf(digits + 16 * half, 17, "%016llx", part(a) + part(b));
    }
    return digits;
  }

  campaign_settings settings_;
  const campaign_observer& observer_;
  bool first_ = true;
  std::set<std::string> sites_;
};

// What the search was, in words: "12 schedules with at most 2 preemptions".
std::string in_words(const campaign_settings& settings, const exploration& made, bool faults) {
  std::string out = std::to_string(made.total.schedules) + (made.total.schedules == 1 ? " schedule " : " schedules ");
  out += settings.preemptions ? "with at most " + std::to_string(*settings.preemptions) + " preemptions"
                              : "in order of creation";
  if (!faults) return out;
  std::set<std::string> points;
  std::uint64_t passes = 0;
  for (const exploration::tried_fault& one : made.tried) {
    points.insert(one.point);
    passes += one.passes;
  }
  return out + ", " + std::to_string(passes) + " faults of " + std::to_string(made.tried.size()) + " kinds at " +
         std::to_string(points.size()) + " points, one at a time";
}

}  // namespace

int explore_command(const arguments& given) {
  campaign_settings settings = base_settings();
  const scenario& what = scenario_named(given.text("SCENARIO"));
  const std::vector<campaign_job> jobs = jobs_for({&what}, given.settings());
  const bool faults = given.given("--faults");
  settings.explore = true;
  settings.preemptions = static_cast<std::uint32_t>(given.count("--preemptions"));
  // Each of a few hundred faults under all schedules is wanted only by who says so.
  if (faults && !given.given("--preemptions")) settings.preemptions.reset();
  settings.seed_first = settings.seed_last = given.count("--seed");
  settings.workers = static_cast<unsigned>(given.count("--jobs"));
  settings.steps_max = given.count("--steps-max");
  settings.traces_directory = given.text("--traces");
  settings.run_seconds_max = static_cast<unsigned>(given.duration_ns("--run-limit") / 1'000'000'000);

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
  exploration made(settings, observer);
  if (faults) {
    made.with_each_fault(jobs.front());
  } else {
    made.plain(jobs.front());
  }
  bar.clear();
  const campaign_summary& s = made.total;

  // A kind that this scenario never passes is not tried. One that was tried at each pass, and never changed anything,
  // is a fault in name only.
  std::vector<std::string> inert;
  for (const fault_counts& f : s.faults) {
    if (!faults || f.struck == 0 || f.effect) continue;
    inert.push_back(f.scenario + ' ' + f.name + ": fired in " + std::to_string(f.struck) + " runs, changed nothing");
  }
  settings.jobs = jobs;
  if (json) {
    nlohmann::ordered_json document = summary_json(settings, s, {}, inert);
    document["tried"] = nlohmann::ordered_json::array();
    for (const exploration::tried_fault& one : made.tried) {
      document["tried"].push_back(
          {{"point", one.point}, {"kind", one.kind}, {"passes", one.passes}, {"complete", one.finished}});
    }
    std::puts(dump(document).c_str());
  } else {
    for (const exploration::tried_fault& one : made.tried) {
      std::printf("fault %s: tried at %llu %s%s\n", (one.point + ':' + one.kind).c_str(),
                  static_cast<unsigned long long>(one.passes), one.passes == 1 ? "pass" : "passes",
                  one.finished ? "" : ", not in all schedules");
    }
    for (const std::string& sentence : s.determinism_failures) std::printf("determinism: %s\n", sentence.c_str());
    for (const std::string& sentence : inert) std::printf("inert fault: %s\n", sentence.c_str());
    const char* how = s.complete              ? "that is all of them"
                      : !s.violations.empty() ? "it ended at a violation"
                      : stop_requested()      ? "it was stopped"
                                              : "it did not finish";
    std::printf("explore: %s, %llu steps, %zu violations; %s\n", in_words(settings, made, faults).c_str(),
                static_cast<unsigned long long>(s.steps), s.violations.size(), how);
  }
  if (s.error) {
    std::fprintf(stderr, "holdfast-sim: %s\n", s.error->c_str());
    return exit_usage;
  }
  if (!s.violations.empty()) return exit_violation;
  if (!s.determinism_failures.empty()) return exit_not_deterministic;
  return inert.empty() ? exit_fine : exit_not_exercised;
}

}  // namespace holdfast::sim
