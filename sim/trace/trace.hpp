// What a trace file holds, read into memory.
//
// Why this exists: a failure has to fit into a small file that shows it again on any machine, that a person can read,
// and that a diff can show. docs/trace-format.md is the format; this is its content.
//
// Ownership   Values.
// Units       Virtual nanoseconds; sizes in bytes.
// Threading   Values.
// Failure     None.
#pragma once

#include <sim/scenarios/scenario.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

constexpr std::uint64_t trace_format = 1;
constexpr std::size_t trace_line_bytes_max = std::size_t{64} << 20;
constexpr std::uint64_t trace_lines_max = 10'000'000;
/// Choices on one line, at most.
constexpr std::size_t trace_choices_per_line_max = 4096;
/// Every so many choices the whole enabled set is checked.
constexpr std::uint64_t trace_check_interval = 64;

struct trace_header {
  std::string title;
  std::string why;
  std::string scenario;
  parameters values;
  std::uint64_t seed = 1;
  std::string strategy = "fifo";
  /// Core settings by name, as JSON text; none can be given yet.
  std::map<std::string, std::string> config;
  std::string hardware = "default";
  std::string origin = "simulated";  // or "recorded", "written"
  std::string core;                  // build id of the program that wrote it; empty in a written trace
  std::vector<std::string> promises;
  /// More scheduling points are a livelock; written only if it is not what every run has.
  std::optional<std::uint64_t> steps_max;
};

struct trace_choice {
  std::uint32_t index;
  std::uint32_t label;  // into `recorded_choices::labels`
};

struct recorded_choices {
  std::vector<std::string> labels;
  std::vector<trace_choice> choices;
  /// One for each choice whose number (from 0) is a multiple of `trace_check_interval`.
  std::vector<std::uint32_t> checks;
};

enum class trace_outcome : std::uint8_t { clean, violation, crash };
std::string_view name_of(trace_outcome outcome) noexcept;

struct trace_end {
  trace_outcome outcome = trace_outcome::clean;
  std::string invariant;       // of a violation
  std::string message;         // of a violation
  std::uint64_t event = 0;     // of a violation: number of the event at which it was noticed
  std::string signal;          // of a crash: "SIGSEGV"
  std::string core = "clean";  // or the mutant's id
  /// In a mutant's trace: what the clean core must do.
  std::optional<trace_outcome> on_clean_core;
  std::uint64_t steps = 0;
  std::int64_t time_ns = 0;
  std::string fingerprint;  // 32 hexadecimal digits; empty: not known (written, or a crash)
};

struct trace_file {
  trace_header header;
  plan what;
  recorded_choices choices;
  std::uint64_t events = 0;  // how many event lines there were
  trace_end end;
};

/// "clean", or the id of the planted bug that this program was built with.
std::string_view core_id() noexcept;

}  // namespace holdfast::sim
