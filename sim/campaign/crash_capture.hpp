// A trace of a run that kills its process.
//
// Why this exists: a crash is the failure that most needs a trace and is least able to write one. The run is made again
// in a child that sends every choice to a file before it is acted on; what is in the file when the child dies becomes
// the trace.
//
// Threading   One thread: it forks.
// Failure     See `crash_report`.
#pragma once

#include <sim/campaign/run_one.hpp>
#include <sim/trace/trace.hpp>

#include <functional>
#include <memory>
#include <string>

namespace holdfast::sim {

struct crash_report {
  /// "SIGSEGV"; empty: the run did not crash again.
  std::string signal;
  trace_file trace;
  /// The spool could not be written or read.
  std::string error;
};

/// `make_chooser` is called in the child. `spool` is a file name for use meanwhile; it is removed.
crash_report capture_crash(const run_spec& spec, const plan& plan, std::string_view strategy_text,
                           const std::function<std::unique_ptr<strategy>()>& make_chooser,
                           std::span<check* const> checks, const std::string& spool, unsigned limit_seconds);

}  // namespace holdfast::sim
