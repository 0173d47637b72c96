#include <sim/campaign/replay.hpp>

#include <sim/campaign/child.hpp>
#include <sim/kernel/strategies/make_strategy.hpp>
#include <sim/kernel/strategies/replay.hpp>
#include <sim/trace/build_id.hpp>

#include <nlohmann/json.hpp>

#include <memory>

namespace holdfast::sim {

std::string_view name_of(replay_result result) noexcept {
  switch (result) {
    case replay_result::same: return "same";
    case replay_result::diverged: return "diverged";
    case replay_result::different: return "different";
  }
  return "";
}

namespace {

constexpr const char* stopped_here = "until";

class stop_at final : public listener {
 public:
  explicit stop_at(std::uint64_t event) : event_(event) {}
  void on_event(world& w, const logged_event& e) override {
    if (e.number == event_) w.violate(stopped_here, "");
  }

 private:
  std::uint64_t event_;
};

// What the child tells its parent.
struct child_report {
  std::string error, invariant, message, fingerprint, mismatch;
  bool wrong = false;
  std::uint64_t steps = 0, followed = 0;
  std::int64_t time_ns = 0;
  std::vector<std::string> events;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(child_report, error, invariant, message, fingerprint, mismatch, wrong, steps, followed,
                                 time_ns, events)
};

child_report make_run(const run_spec& spec, const trace_file& trace, bool exact, const replay_settings& settings) {
  child_report out;
  std::unique_ptr<strategy> other;
  replay_strategy replay(trace.choices, exact ? after_mismatch::stop : after_mismatch::fifo);
  strategy* chooser = &replay;
  if (trace.choices.choices.empty()) {
    auto made = make_strategy(trace.header.strategy);
    if (!made) {
      out.error = made.error();
      return out;
    }
    other = std::move(*made);
    chooser = other.get();
  }
  std::vector<listener*> listening;
  event_collector collector(settings.events.value_or(event_collector::form::text));
  if (settings.events) listening.push_back(&collector);
  stop_at stopper(settings.until.value_or(0));
  if (settings.until) listening.push_back(&stopper);
  run_outcome outcome = run_one(spec, trace.what, *chooser, {settings.checks, listening, true, false});
  if (outcome.error) out.error = *outcome.error;
  if (outcome.wrong) {
    out.wrong = true;
    out.invariant = outcome.wrong->invariant;
    out.message = outcome.wrong->message;
  }
  out.fingerprint = outcome.fingerprint;
  out.steps = outcome.steps;
  out.time_ns = outcome.time_ns;
  out.followed = replay.followed();
  if (replay.mismatch()) out.mismatch = replay.mismatch()->sentence;
  out.events = std::move(collector.lines);
  return out;
}

// What the trace says about this core.
std::optional<std::string> expect(const trace_end& end, replay_report& into) {
  trace_outcome outcome = end.outcome;
  if (end.core == core_id()) {
    into.expected_invariant = end.invariant;
  } else if (core_id() == "clean" && end.on_clean_core) {
    outcome = *end.on_clean_core;
  } else {
    return "the trace is of core '" + end.core + "' and does not say what core '" + std::string(core_id()) +
           "' must do";
  }
  into.expected = name_of(outcome);
  return std::nullopt;
}

std::expected<run_spec, std::string> spec_of(const trace_header& header) {
  const scenario* what = find_scenario(header.scenario);
  if (what == nullptr)
    return std::unexpected("there is no scenario '" + header.scenario + "'; see `holdfast-sim list`");
  if (!header.config.empty()) {
    return std::unexpected("core setting '" + header.config.begin()->first +
                           "' is not known: this version takes none from a trace");
  }
  if (header.hardware != "default") {
    return std::unexpected("hardware profile '" + header.hardware + "' is not known; there is 'default'");
  }
  auto values = complete_parameters(*what, header.values);
  if (!values) return std::unexpected(values.error());
  return run_spec{what, std::move(*values), header.seed, header.steps_max.value_or(run_spec{}.steps_max)};
}

std::string outcome_in_words(const std::string& outcome, const std::string& invariant) {
  return invariant.empty() ? outcome : outcome + " of " + invariant;
}

}  // namespace

replay_report replay_trace(const std::string& file, const trace_file& trace, const replay_settings& settings) {
  replay_report out;
  out.file = file;
  out.choices = trace.choices.choices.size();
  out.error = expect(trace.end, out);
  const auto spec = spec_of(trace.header);
  if (!spec && !out.error) out.error = spec.error();
  if (out.error) return out;

  // Only the program that wrote the trace must make every step of it.
  const bool exact = !trace.header.core.empty() && trace.header.core == build_id();
  const child_answer answer = in_child(
      [&] {
        return nlohmann::json(make_run(*spec, trace, exact, settings))
            .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      },
      settings.run_seconds_max);
  if (!answer.death.empty()) {
    out.outcome = "crash";
    out.message = answer.death;
  } else {
    child_report run = nlohmann::json::parse(answer.text).get<child_report>();
    if (!run.error.empty()) {
      out.error = run.error;
      return out;
    }
    out.outcome = run.wrong ? "violation" : "clean";
    out.invariant = run.invariant;
    out.message = run.message;
    out.fingerprint = run.fingerprint;
    out.steps = run.steps;
    out.time_ns = run.time_ns;
    out.followed = run.followed;
    out.difference = run.mismatch;
    out.events = std::move(run.events);
    if (run.wrong && run.invariant == divergence) {
      out.outcome = "diverged";
      out.result = replay_result::diverged;
      return out;
    }
    if (run.wrong && run.invariant == stopped_here) {
      out.outcome = "stopped";
      out.invariant.clear();
      out.result = replay_result::same;
      return out;
    }
  }
  const bool as_expected =
      out.outcome == out.expected && (out.expected_invariant.empty() || out.invariant == out.expected_invariant);
  if (!as_expected) {
    out.result = replay_result::different;
    if (out.difference.empty()) {
      out.difference = "ended as " + outcome_in_words(out.outcome, out.invariant) + "; the trace says " +
                       outcome_in_words(out.expected, out.expected_invariant);
    }
    return out;
  }
  out.result = replay_result::same;
  const trace_end& end = trace.end;
  if (!exact || end.core != core_id() || end.fingerprint.empty()) return out;
  if (out.steps != end.steps) {
    out.difference = std::to_string(out.steps) + " steps; the trace says " + std::to_string(end.steps);
  } else if (out.time_ns != end.time_ns) {
    out.difference = std::to_string(out.time_ns) + " ns; the trace says " + std::to_string(end.time_ns);
  } else if (out.fingerprint != end.fingerprint) {
    out.difference = "fingerprint " + out.fingerprint + "; the trace says " + end.fingerprint;
  }
  if (!out.difference.empty()) out.result = replay_result::diverged;
  return out;
}

}  // namespace holdfast::sim
