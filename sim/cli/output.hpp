// What the commands print, in one place.
//
// Why this exists: campaign, run and explore report the same things in the same words and the same JSON.
//
// Threading   One thread. Failure: none.
#pragma once

#include <sim/campaign/campaign.hpp>
#include <sim/cli/arguments.hpp>

#include <nlohmann/json.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace holdfast::sim {

/// In quotes, if a shell would see anything but one word.
std::string shell_word(const std::string& text);
/// "build/release/bin/holdfast-sim replay traces-found/x.jsonl".
std::string replay_command_for(const arguments& given, const std::string& trace);
/// Invariant, sentence, where it was found, path of the trace, and the command to replay it.
std::string violation_text(const arguments& given, const campaign_violation& v);
/// Bytes that are not UTF-8 become replacement characters.
std::string dump(const nlohmann::ordered_json& document);

/// What was promised and not exercised, one sentence each; only of a campaign over everything.
std::vector<std::string> unreached_of(const campaign_summary& s);
/// Faults of scenarios that were planned in at least `planned_min` runs and never fired, or fired and never changed
/// anything; one sentence each.
std::vector<std::string> inert_of(const campaign_summary& s, std::uint64_t planned_min);
/// A generator plans more faults than strike in a single run: one that waits for the twelfth allocation may come after
/// the last. Over so many runs a fault that never does is a hole in the workload.
constexpr std::uint64_t audit_planned_min = 50;
/// The document of campaign, run and explore. `unreached` and `inert` as above.
nlohmann::ordered_json summary_json(const campaign_settings& settings, const campaign_summary& s,
                                    const std::vector<std::string>& unreached, const std::vector<std::string>& inert);

/// A line on stderr that overwrites itself; nothing unless stderr is a terminal.
class progress_bar {
 public:
  explicit progress_bar(bool wanted);
  ~progress_bar() { clear(); }
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;
  void show(const campaign_progress& p);
  /// Before anything else is printed.
  void clear();

 private:
  bool wanted_;
  bool shown_ = false;
};

}  // namespace holdfast::sim
