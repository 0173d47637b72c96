#include <sim/campaign/capture.hpp>

#include <sim/kernel/strategies/replay.hpp>
#include <sim/trace/build_id.hpp>
#include <sim/trace/recorder.hpp>

namespace holdfast::sim {

namespace {

// What is safe in a file name of every system and needs no quotes in a shell.
std::string file_word(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    if (plain) {
      out += c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  return out;
}

}  // namespace

trace_header header_for(const run_spec& spec, std::string_view strategy_text) {
  trace_header out;
  out.scenario = spec.what->name();
  out.values = spec.values;
  out.seed = spec.seed;
  out.strategy = strategy_text;
  out.core = build_id();
  if (spec.steps_max != run_spec{}.steps_max) out.steps_max = spec.steps_max;
  return out;
}

trace_end end_for(const run_outcome& outcome) {
  trace_end out;
  if (outcome.wrong) {
    out.outcome = trace_outcome::violation;
    out.invariant = outcome.wrong->invariant;
    out.message = outcome.wrong->message;
    out.event = outcome.wrong->event;
  }
  out.core = core_id();
  if (out.core != "clean") out.on_clean_core = trace_outcome::clean;
  out.steps = outcome.steps;
  out.time_ns = outcome.time_ns;
  out.fingerprint = outcome.fingerprint;
  return out;
}

captured_run capture(const run_spec& spec, const plan& plan, const run_outcome& first, std::string_view strategy_text,
                     std::span<check* const> checks, std::size_t events_max) {
  captured_run out;
  trace_recorder recorder(events_max);
  listener* const listening[] = {&recorder};
  index_replay_strategy replay(first.indices, after_mismatch::stop);
  out.again = run_one(spec, plan, replay, {checks, listening, true, false});
  out.repeated = same_outcome(first, out.again);
  out.event_lines = recorder.event_lines();
  out.trace.header = header_for(spec, strategy_text);
  if (first.wrong) {
    out.trace.header.title = first.wrong->invariant + " in " + std::string(spec.what->name());
    out.trace.header.why = "Found by a run with seed " + std::to_string(spec.seed) + '.';
    out.trace.header.promises = {first.wrong->invariant};
  } else {
    out.trace.header.title = "A run of " + std::string(spec.what->name());
    out.trace.header.why = "Recorded on request.";
  }
  out.trace.what = plan;
  out.trace.choices = std::move(recorder.choices);
  out.trace.end = end_for(out.again);
  return out;
}

std::string trace_path(const std::string& directory, const run_spec& spec, std::string_view strategy_text,
                       std::string_view reason) {
  // Weights are drawn from the seed and would only make the name long.
  const std::string_view family = strategy_text.substr(0, strategy_text.find(':'));
  return directory + '/' + file_word(spec.what->name()) + '-' + file_word(family) + '-' + std::to_string(spec.seed) +
         '-' + file_word(reason) + ".jsonl";
}

}  // namespace holdfast::sim
