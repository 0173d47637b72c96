#include <sim/campaign/capture.hpp>
#include <sim/campaign/child.hpp>
#include <sim/campaign/crash_capture.hpp>
#include <sim/campaign/portfolio.hpp>
#include <sim/campaign/signals.hpp>
#include <sim/cli/commands.hpp>
#include <sim/cli/inputs.hpp>
#include <sim/cli/output.hpp>
#include <sim/kernel/strategies/make_strategy.hpp>
#include <sim/trace/event_text.hpp>
#include <sim/trace/writer.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <limits>

namespace holdfast::sim {

namespace {

// What the child found out, besides the outcome.
struct report {
  std::string error, fingerprint, invariant, message, strategy, trace, determinism;
  bool wrong = false;
  std::uint64_t steps = 0, choices = 0;
  std::int64_t time_ns = 0;
  std::vector<std::string> events, inert;
  std::vector<std::uint64_t> counts;  // evaluated and exercised of each check
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(report, error, fingerprint, invariant, message, strategy, trace, determinism, wrong,
                                 steps, choices, time_ns, events, inert, counts)
};

struct wishes {
  std::string strategy;
  std::string trace;                            // file; empty: none wanted
  std::string traces_directory;                 // for violations
  std::optional<event_collector::form> events;  // to be shown
  bool events_in_trace = false;
};

std::string violation_path(const wishes& w, const run_spec& spec, std::string_view strategy, std::string_view reason) {
  return w.trace.empty() ? trace_path(w.traces_directory, spec, strategy, reason) : w.trace;
}

report make_run(const run_spec& spec, const campaign_settings& settings, const wishes& w) {
  report out;
  const auto chooser = std::move(*make_strategy(w.strategy));
  event_collector collector(w.events.value_or(event_collector::form::text));
  std::vector<listener*> listening;
  if (w.events) listening.push_back(&collector);
  const plan plan = spec.what->generate(spec.values, spec.seed);
  const run_outcome outcome = run_one(spec, plan, *chooser, {settings.checks, listening, true, true});
  if (outcome.error) {
    out.error = *outcome.error;
    return out;
  }
  out.strategy = chooser->name();
  out.fingerprint = outcome.fingerprint;
  out.steps = outcome.steps;
  out.choices = outcome.choices;
  out.time_ns = outcome.time_ns;
  out.events = std::move(collector.lines);
  for (std::size_t i = 0; i < outcome.struck.size(); ++i) {
    if (outcome.struck[i] == 0) out.inert.push_back(plan.faults[i].where + ':' + plan.faults[i].what);
  }
  for (const check* c : settings.checks) {
    out.counts.push_back(c->evaluated);
    out.counts.push_back(c->exercised);
  }
  if (outcome.wrong) {
    out.wrong = true;
    out.invariant = outcome.wrong->invariant;
    out.message = outcome.wrong->message;
  }
  if (!outcome.wrong && w.trace.empty()) return out;

  const std::size_t events_max = w.events_in_trace ? std::numeric_limits<std::size_t>::max()
                                 : outcome.wrong   ? captured_events_max
                                                   : 0;
  const captured_run captured = capture(spec, plan, outcome, out.strategy, settings.checks, events_max);
  if (!captured.repeated) {
    out.determinism =
        "the run did not repeat itself: fingerprints " + outcome.fingerprint + " and " + captured.again.fingerprint;
    return out;
  }
  const std::string path = violation_path(w, spec, out.strategy, out.invariant);
  std::error_code ignored;  // the writer says what is wrong with the path
  if (w.trace.empty()) std::filesystem::create_directories(w.traces_directory, ignored);
  if (const auto failed = write_trace(path, captured.trace, captured.event_lines)) {
    out.error = *failed;
  } else {
    out.trace = path;
  }
  return out;
}

report after_crash(const run_spec& spec, const campaign_settings& settings, const wishes& w, const std::string& death) {
  report out;
  const std::string path = violation_path(w, spec, w.strategy, "crash");
  std::error_code ignored;
  if (w.trace.empty()) std::filesystem::create_directories(w.traces_directory, ignored);
  const crash_report crash = capture_crash(
      spec, spec.what->generate(spec.values, spec.seed), w.strategy,
      [&w] { return std::move(*make_strategy(w.strategy)); }, settings.checks, path + ".choices", 0);
  if (crash.signal.empty()) {
    out.determinism = "the process died (" + death + "), but not again";
    return out;
  }
  out.error = crash.error;
  if (out.error.empty()) out.error = write_trace(path, crash.trace, {}).value_or("");
  out.wrong = true;
  out.invariant = "crash";
  out.message = "the process died: " + crash.signal;
  out.strategy = w.strategy;
  out.trace = path;
  out.steps = crash.trace.end.steps;
  out.time_ns = crash.trace.end.time_ns;
  out.choices = crash.trace.choices.choices.size();
  return out;
}

}  // namespace

int run_command(const arguments& given) {
  const campaign_settings base = base_settings();
  campaign_settings settings = base;
  const scenario& what = scenario_named(given.text("SCENARIO"));
  settings.jobs = {job_for(what, given.settings())};
  const run_spec spec{&what, settings.jobs.front().values, given.count("--seed"), given.count("--steps-max")};
  const bool json = given.flag("--json");
  wishes w;
  w.strategy = strategy_for(given.text("--strategy"), what.name(), spec.seed);
  w.trace = given.text("--trace");
  w.traces_directory = given.text("--traces");
  w.events_in_trace = given.flag("--events") && !w.trace.empty();
  if (given.flag("--events") && w.trace.empty()) {
    w.events = json ? event_collector::form::json : event_collector::form::text;
  }

  const auto began = std::chrono::steady_clock::now();
  const child_answer answer = in_child([&] {
    return nlohmann::json(make_run(spec, settings, w)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  });
  if (stop_requested()) throw usage_error{"stopped on request"};
  report r = answer.death.empty() ? nlohmann::json::parse(answer.text).get<report>()
                                  : after_crash(spec, settings, w, answer.death);
  if (!r.error.empty()) throw usage_error{r.error};

  campaign_summary s;
  s.runs = 1;
  s.steps = r.steps;
  s.choices = r.choices;
  s.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  s.complete = true;
  if (!r.determinism.empty()) s.determinism_failures.push_back(r.determinism);
  if (r.wrong)
    s.violations.push_back({r.invariant, r.message, r.trace, std::string(what.name()), r.strategy, spec.seed});
  for (std::size_t i = 0; i < settings.checks.size() && 2 * i + 1 < r.counts.size(); ++i) {
    const check& c = *settings.checks[i];
    s.checks.push_back({c.id(), c.sentence(), r.counts[2 * i], r.counts[2 * i + 1]});
  }
  if (json) {
    nlohmann::ordered_json document = summary_json(settings, s, {}, r.inert);
    document["fingerprint"] = r.fingerprint;
    document["time_ns"] = r.time_ns;
    document["strategy"] = r.strategy;
    document["trace"] = r.trace;
    if (w.events) {
      document["events"] = nlohmann::ordered_json::array();
      for (const std::string& line : r.events) document["events"].push_back(nlohmann::ordered_json::parse(line));
    }
    std::puts(dump(document).c_str());
  } else {
    for (const std::string& line : r.events) std::puts(line.c_str());
    for (const campaign_violation& v : s.violations) std::fputs(violation_text(given, v).c_str(), stdout);
    for (const std::string& sentence : s.determinism_failures) std::printf("determinism: %s\n", sentence.c_str());
    if (!r.wrong && !r.trace.empty()) std::printf("trace    %s\n", r.trace.c_str());
    std::printf("run: %s, seed %llu, strategy %s: %s, %llu steps, %llu choices, %lld ns, fingerprint %s\n",
                std::string(what.name()).c_str(), static_cast<unsigned long long>(spec.seed), r.strategy.c_str(),
                r.wrong ? ("violation of " + r.invariant).c_str() : "clean", static_cast<unsigned long long>(r.steps),
                static_cast<unsigned long long>(r.choices), static_cast<long long>(r.time_ns),
                r.fingerprint.empty() ? "unknown" : r.fingerprint.c_str());
  }
  if (r.wrong) return exit_violation;
  return r.determinism.empty() ? exit_fine : exit_not_deterministic;
}

}  // namespace holdfast::sim
