// Makes a trace of a run that turned out to be worth keeping.
//
// Why this exists: ordinary runs record indices alone. The run is made again from them, this time with labels, checks
// and events; that it comes out the same is a check of determinism besides.
//
// Threading   One OS thread, in the process that made the run: it has the same checks and the same code.
// Failure     `repeated` false: the second run was another one; the trace is of the second.
#pragma once

#include <sim/campaign/run_one.hpp>
#include <sim/trace/trace.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

struct captured_run {
  trace_file trace;
  std::vector<std::string> event_lines;
  bool repeated = false;
  run_outcome again;
};

/// Of violating runs the last so many events are kept.
constexpr std::size_t captured_events_max = 100'000;

/// `first` must have its indices and its fingerprint. `strategy_text` is what made the choices.
captured_run capture(const run_spec& spec, const plan& plan, const run_outcome& first, std::string_view strategy_text,
                     std::span<check* const> checks, std::size_t events_max);

/// Header of a trace that this program writes now.
trace_header header_for(const run_spec& spec, std::string_view strategy_text);
/// End line for `outcome`, on this program's core.
trace_end end_for(const run_outcome& outcome);
/// "DIR/pool-churn-17-W-1.jsonl": a name that depends on the arguments only.
std::string trace_path(const std::string& directory, const run_spec& spec, std::string_view strategy_text,
                       std::string_view reason);

}  // namespace holdfast::sim
