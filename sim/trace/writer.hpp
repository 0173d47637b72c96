// Writes a trace file.
//
// Why this exists: what is found must survive: the file appears under its name only when it is complete.
//
// Threading   One thread. Failure: a sentence that names the file; nothing is left behind then.
#pragma once

#include <sim/trace/trace.hpp>

#include <optional>
#include <string>
#include <vector>

namespace holdfast::sim {

/// Compressed if the name ends in ".zst". `event_lines` as `trace_recorder` gives them.
std::optional<std::string> write_trace(const std::string& path, const trace_file& trace,
                                       const std::vector<std::string>& event_lines);

}  // namespace holdfast::sim
