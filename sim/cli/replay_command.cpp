#include <sim/campaign/replay.hpp>
#include <sim/campaign/signals.hpp>
#include <sim/cli/commands.hpp>
#include <sim/cli/output.hpp>
#include <sim/trace/reader.hpp>

#include <properties/invariants/registry.hpp>

#include <algorithm>
#include <cstdio>

namespace holdfast::sim {

namespace {

void print(const replay_report& r) {
  for (const std::string& line : r.events) std::puts(line.c_str());
  std::string text = std::string(name_of(r.result)) + "  " + r.file + ": " + r.outcome;
  if (!r.invariant.empty()) text += " of " + r.invariant;
  if (r.outcome == "crash") text += ", " + r.message;
  if (r.outcome == "violation" && r.result != replay_result::diverged) text += ": " + r.message;
  if (!r.difference.empty()) text += "\n  " + r.difference;
  if (r.followed != r.choices && r.outcome != "crash") {
    text += "\n  choices followed: " + std::to_string(r.followed) + " of " + std::to_string(r.choices);
  }
  std::puts(text.c_str());
  std::fflush(stdout);
}

nlohmann::ordered_json as_json(const replay_report& r, bool events) {
  nlohmann::ordered_json out;
  out["file"] = r.file;
  out["outcome"] = r.outcome;
  out["expected"] = r.expected;
  out["fingerprint"] = r.fingerprint;
  out["result"] = name_of(r.result);
  out["invariant"] = r.invariant;
  out["message"] = r.message;
  out["expected_invariant"] = r.expected_invariant;
  out["steps"] = r.steps;
  out["time_ns"] = r.time_ns;
  out["choices"] = r.choices;
  out["followed"] = r.followed;
  out["difference"] = r.difference;
  if (events) {
    out["events"] = nlohmann::ordered_json::array();
    for (const std::string& line : r.events) out["events"].push_back(nlohmann::ordered_json::parse(line));
  }
  return out;
}

}  // namespace

int replay_command(const arguments& given) {
  const bool json = given.flag("--json");
  replay_settings settings;
  settings.checks = invariants::all_checks();
  if (given.flag("--events")) settings.events = json ? event_collector::form::json : event_collector::form::text;
  settings.until = given.count_if_given("--until");
  settings.run_seconds_max = static_cast<unsigned>(given.duration_ns("--run-limit") / 1'000'000'000);

  nlohmann::ordered_json document;
  document["traces"] = nlohmann::ordered_json::array();
  std::size_t counts[3] = {};
  std::size_t unreadable = 0;
  const std::vector<std::string> files = given.texts("TRACE");
  for (const std::string& file : files) {
    const auto trace = read_trace(file);
    if (!trace) {
      std::fprintf(stderr, "holdfast-sim: %s\n", trace.error().c_str());
      ++unreadable;
      continue;
    }
    const replay_report report = replay_trace(file, *trace, settings);
    if (stop_requested()) break;
    if (report.error) {
      std::fprintf(stderr, "holdfast-sim: %s: %s\n", file.c_str(), report.error->c_str());
      ++unreadable;
      continue;
    }
    ++counts[static_cast<std::size_t>(report.result)];
    if (json) {
      document["traces"].push_back(as_json(report, settings.events.has_value()));
    } else {
      print(report);
    }
  }
  if (json) {
    std::puts(dump(document).c_str());
  } else if (unreadable != files.size()) {
    std::printf("replay: %zu traces, %zu same, %zu diverged, %zu different\n", counts[0] + counts[1] + counts[2],
                counts[0], counts[1], counts[2]);
  }
  if (unreadable != 0) return exit_usage;
  return counts[1] + counts[2] != 0 || stop_requested() ? exit_replay_differs : exit_fine;
}

}  // namespace holdfast::sim
