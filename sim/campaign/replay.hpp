// Runs a trace again, and says whether it ended as the trace says.
//
// Why this exists: a stored failure is a regression test: the same outcome for ever on the core that has the bug, and a
// clean end on the one that has not.
//
// Threading   One thread: the run is made in a child, since it may crash.
// Failure     `error`: the trace does not fit this program (unknown scenario, parameter or fault; it says nothing about
//             this core).
#pragma once

#include <sim/campaign/run_one.hpp>
#include <sim/trace/event_text.hpp>
#include <sim/trace/trace.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

enum class replay_result : std::uint8_t {
  same,       // ended as the trace says for this core
  diverged,   // this very program made other choices, steps or events than the trace says
  different,  // ended otherwise
};
std::string_view name_of(replay_result result) noexcept;

struct replay_settings {
  std::vector<check*> checks;
  std::optional<event_collector::form> events;
  /// Stop after the event with this number; outcomes are not compared then.
  std::optional<std::uint64_t> until;
  unsigned run_seconds_max = 0;  // real time; more is a crash with SIGABRT; 0: no bound
};

struct replay_report {
  std::string file;
  replay_result result = replay_result::different;
  std::string outcome;             // "clean", "violation", "crash", or "stopped" at `until`
  std::string invariant, message;  // of a violation; of a crash the signal is the message
  std::string expected;            // "clean", "violation" or "crash"
  std::string expected_invariant;
  std::string fingerprint;  // empty after a crash
  std::uint64_t steps = 0;
  std::int64_t time_ns = 0;
  std::uint64_t choices = 0;   // in the trace
  std::uint64_t followed = 0;  // of them, agreeing; not known after a crash
  /// What differed first, if anything did.
  std::string difference;
  std::vector<std::string> events;
  std::optional<std::string> error;
};

replay_report replay_trace(const std::string& file, const trace_file& trace, const replay_settings& settings);

}  // namespace holdfast::sim
