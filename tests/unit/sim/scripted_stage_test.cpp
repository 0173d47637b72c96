// Stages over the scripted device: ops are checked before a run, every scenario runs clean, every kind of answer is
// given in some run, and the same seed is the same run.
//
// How: plans are run in this process, with all invariants attached.
#include <sim/campaign/run_one.hpp>
#include <sim/faults/fault_plan.hpp>
#include <sim/kernel/strategies/fifo.hpp>
#include <sim/kernel/strategies/random.hpp>
#include <sim/scenarios/builtin.hpp>
#include <sim/scenarios/scenario.hpp>
#include <sim/scenarios/scripted_stage.hpp>

#include <properties/invariants/registry.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace sim = holdfast::sim;

constexpr const char* names[] = {
    "unmap-refused",         "unmap-late",          "unmap-never",   "unmap-lies",         "growth-cancelled",
    "shutdown-scripted",     "threads-at-the-edge", "get-exits",     "cut-against-retire", "publish-against-close",
    "hold-against-shutdown", "two-misses",          "reclaim-churn", "pressure",           "sweep-against-allocation"};

const sim::scenario& scenario(const char* name) {
  sim::add_builtin_scenarios();
  return *sim::find_scenario(name);
}

std::string refusal_of(sim::plan plan) {
  sim::fifo_strategy fifo;
  sim::world w({}, fifo);
  const auto started = sim::start_scripted(w, {}, plan);
  return started ? "" : started.error();
}

TEST(ScriptedStage, AnOpThatMakesNoSenseIsASentenceBeforeTheRun) {
  EXPECT_NE(refusal_of({{{"a/app", "fetch", {}, {}}}, {}}).find("there is no such step; there are abandon, alloc"),
            std::string::npos);
  EXPECT_NE(refusal_of({{{"b/app", "snapshot", {}, {}}}, {}}).find("there is one host, \"a\""), std::string::npos);
  EXPECT_NE(refusal_of({{{"a/app", "get", {{"slot", 1}}, {}}}, {}}).find("it needs the number \"seed\""),
            std::string::npos);
  EXPECT_NE(refusal_of({{{"a/app", "free", {{"slot", 64}}, {}}}, {}}).find("slot 64 is not in 0..63"),
            std::string::npos);
  EXPECT_NE(refusal_of({{{"a/app", "sleep", {{"ns", -1}}, {}}}, {}}).find("\"ns\" is negative"), std::string::npos);
  EXPECT_EQ(refusal_of({{{"a/app", "snapshot", {}, {}}}, {}}), "");
}

sim::run_outcome run(const sim::scenario& what, std::uint64_t seed, std::set<std::string>* struck = nullptr) {
  sim::run_spec spec;
  spec.what = &what;
  spec.seed = seed;
  spec.values = *sim::complete_parameters(what, {});
  const sim::plan plan = what.generate(spec.values, seed);
  sim::random_strategy chooser(std::nullopt);
  sim::run_observers observers;
  const std::vector<sim::check*> checks = holdfast::invariants::all_checks();
  observers.checks = checks;
  observers.fingerprint = true;
  struct fired final : sim::listener {
    const sim::plan* of = nullptr;
    std::set<std::string>* into = nullptr;
    void on_event(sim::world&, const sim::logged_event& e) override {
      if (e.kind != sim::hardware_event::fault_fired || into == nullptr) return;
      const sim::fault& f = of->faults[e.fields[0]];
      into->insert(f.where + " " + f.what);
    }
  } note;
  note.of = &plan;
  note.into = struck;
  sim::listener* const listeners[] = {&note};
  observers.listeners = listeners;
  return sim::run_one(spec, plan, chooser, observers);
}

TEST(ScriptedStage, EveryScenarioRunsCleanAndTheSameTwice) {
  for (const char* const name : names) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const sim::run_outcome once = run(scenario(name), seed);
      ASSERT_FALSE(once.wrong) << name << " seed " << seed << ": " << once.wrong->invariant << ": "
                               << once.wrong->message;
      ASSERT_EQ(once.fingerprint, run(scenario(name), seed).fingerprint) << name << " seed " << seed;
    }
  }
}

TEST(ScriptedStage, EveryKindOfAnswerIsGivenInSomeRun) {
  std::set<std::string> struck;
  for (const char* const name : {"shutdown-scripted", "get-exits", "unmap-late"})
    for (std::uint64_t seed = 1; seed <= 400; ++seed) run(scenario(name), seed, &struck);
  for (const sim::fault_point& point : sim::all_fault_points()) {
    if (!point.name.starts_with("scripted.")) continue;
    for (std::string_view kinds = point.kinds; !kinds.empty();) {
      const std::string kind(kinds.substr(0, kinds.find('|')));
      kinds.remove_prefix(std::min(kinds.size(), kind.size() + 1));
      EXPECT_TRUE(struck.contains(std::string(point.name) + " " + kind)) << point.name << " " << kind;
    }
  }
}

}  // namespace
