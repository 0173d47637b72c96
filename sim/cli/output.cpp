#include <sim/cli/output.hpp>

#include <algorithm>
#include <cmath>
#include <unistd.h>

namespace holdfast::sim {

std::string shell_word(const std::string& text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:@%,";
  if (!text.empty() && text.find_first_not_of(plain) == text.npos) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + '\'';
}

std::string replay_command_for(const arguments& given, const std::string& trace) {
  return shell_word(given.program()) + " replay " + shell_word(trace);
}

namespace {

// Makes the run again without its trace: what a person changes something in the code for and tries.
std::string run_command_for(const arguments& given, const campaign_violation& v) {
  std::string out = shell_word(given.program()) + " run " + shell_word(v.scenario) + " --seed " +
                    std::to_string(v.seed) + " --strategy " + shell_word(v.strategy);
  const scenario* const what = find_scenario(v.scenario);
  for (const std::string& setting : given.texts("--set")) {
    const std::string name = setting.substr(0, setting.find('='));
    const std::vector<parameter> known = what->describe_parameters();
    if (std::ranges::find(known, name, &parameter::name) != known.end()) out += " --set " + shell_word(setting);
  }
  if (given.given("--steps-max")) out += " --steps-max " + given.text("--steps-max");
  return out;
}

}  // namespace

std::string violation_text(const arguments& given, const campaign_violation& v) {
  std::string out = "violation " + v.invariant + ": " + v.message + "\n  found in " + v.scenario + ", seed " +
                    std::to_string(v.seed) + ", strategy " + v.strategy +
                    (v.fault.empty() ? "" : ", fault " + v.fault) + '\n';
  // One schedule of an exploration has no name but its trace.
  if (given.command() != "explore") out += "  run      " + run_command_for(given, v) + '\n';
  if (v.trace.empty()) return out + "  no trace: the run did not repeat itself\n";
  return out + "  trace    " + v.trace + "\n  replay   " + replay_command_for(given, v.trace) + '\n';
}

std::string dump(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string> unreached_of(const campaign_summary& s) {
  std::vector<std::string> out;
  for (const check_counts& c : s.checks) {
    if (c.exercised == 0) out.push_back("invariant " + std::string(c.id));
  }
  for (const mark_counts& m : s.marks) {
    if (m.runs == 0) out.push_back("mark " + std::string(m.id));
  }
  return out;
}

std::vector<std::string> inert_of(const campaign_summary& s, std::uint64_t planned_min) {
  std::vector<std::string> out;
  for (const fault_counts& f : s.faults) {
    if (f.planned < planned_min || f.effect) continue;
    out.push_back(f.scenario + ' ' + f.name + ": planned in " + std::to_string(f.planned) + " runs, " +
                  (f.struck == 0 ? "never fired" : "fired in " + std::to_string(f.struck) + ", changed nothing"));
  }
  return out;
}

nlohmann::ordered_json summary_json(const campaign_settings& settings, const campaign_summary& s,
                                    const std::vector<std::string>& unreached, const std::vector<std::string>& inert) {
  nlohmann::ordered_json out;
  out["scenarios"] = nlohmann::ordered_json::array();
  for (const campaign_job& j : settings.jobs) {
    const std::string name(j.what->name());
    if (std::ranges::find(out["scenarios"], nlohmann::ordered_json(name)) == out["scenarios"].end()) {
      out["scenarios"].push_back(name);
    }
  }
  out["runs"] = s.runs;
  if (s.schedules != 0) out["schedules"] = s.schedules;
  out["steps"] = s.steps;
  out["choices"] = s.choices;
  out["calm"] = {{"expected", s.calm_expected}, {"reached", s.calm_reached}};
  out["seconds"] = std::round(s.seconds * 1000) / 1000;
  out["violations"] = nlohmann::ordered_json::array();
  for (const campaign_violation& v : s.violations) {
    out["violations"].push_back({{"invariant", v.invariant},
                                 {"message", v.message},
                                 {"trace", v.trace},
                                 {"seed", v.seed},
                                 {"scenario", v.scenario},
                                 {"strategy", v.strategy}});
    if (!v.fault.empty()) out["violations"].back()["fault"] = v.fault;
  }
  out["unreached"] = unreached;
  out["inert_faults"] = inert;
  out["determinism_failures"] = s.determinism_failures.size();
  out["complete"] = s.complete;
  out["fingerprint"] = s.fingerprint;
  out["determinism"] = s.determinism_failures;
  out["invariants"] = nlohmann::ordered_json::array();
  for (const check_counts& c : s.checks) {
    out["invariants"].push_back({{"id", c.id}, {"evaluated", c.evaluated}, {"exercised", c.exercised}});
  }
  out["reached"] = nlohmann::ordered_json::array();
  for (const mark_counts& m : s.marks) out["reached"].push_back({{"id", m.id}, {"runs", m.runs}});
  out["faults"] = nlohmann::ordered_json::array();
  for (const fault_counts& f : s.faults) {
    out["faults"].push_back({{"name", f.name},
                             {"scenario", f.scenario},
                             {"planned", f.planned},
                             {"struck", f.struck},
                             {"effect", f.effect}});
  }
  out["transitions_never_taken"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < s.gauges.size(); ++i) {
    if (s.gauges[i] == 0) out["transitions_never_taken"].push_back(settings.gauges.names[i]);
  }
  return out;
}

progress_bar::progress_bar(bool wanted) : wanted_(wanted && isatty(STDERR_FILENO) == 1) {}

void progress_bar::show(const campaign_progress& p) {
  if (!wanted_) return;
  double done = 0;
  if (p.runs_total != 0) done = static_cast<double>(p.runs) / static_cast<double>(p.runs_total);
  if (p.seconds_max > 0) done = std::max(done, p.seconds / p.seconds_max);
  done = std::min(done, 1.0);
  constexpr int width = 24;
  std::string bar(width, '.');
  std::fill_n(bar.begin(), static_cast<int>(done * width), '#');
  const double left = done > 0.001 ? p.seconds / done - p.seconds : 0;
  const bool bounded = p.runs_total != 0 || p.seconds_max > 0;
  char remaining[32] = "";
  if (bounded) {
    std::snprintf(remaining, sizeof remaining, ", %d:%02d left", static_cast<int>(left) / 60,
                  static_cast<int>(left) % 60);
  }
  std::fprintf(stderr, "\r\033[K%s%s%s%llu runs, %.0f/s%s, %zu violations", bounded ? "[" : "",
               bounded ? bar.c_str() : "", bounded ? "] " : "", static_cast<unsigned long long>(p.runs),
               p.seconds > 0 ? static_cast<double>(p.runs) / p.seconds : 0.0, remaining, p.violations);
  std::fflush(stderr);
  shown_ = true;
}

void progress_bar::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace holdfast::sim
