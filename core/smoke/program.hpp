// holdfast-smoke's options and texts, for the program and for its man page.
#pragma once

#include <holdfast/platform/abi.hpp>

#include "tool/program.hpp"

namespace holdfast::smoke {

namespace table {

using holdfast::options::option_kind;
using tool::described;
using tool::given_as;

inline constexpr std::uint64_t second = 1'000'000'000;
inline constexpr std::uint64_t pid_max = std::uint64_t{1} << 22;  // of the kernel

inline constexpr tool::program_option options[] = {
    {described("--only", option_kind::choice, "ucx|verbs|cuda|host", 0, 0, "", "check this part only"), given_as::many,
     "PART"},
    {described("--bytes", option_kind::size, "", 64, std::uint64_t{4} << 30, std::uint64_t{32} << 20,
               "the largest GET"),
     given_as::once, "N"},
    {described("--peers", option_kind::count, "", 1, 64, 2, "processes that serve memory"), given_as::once, "N"},
    {described("--seconds", option_kind::duration, "", second / 10, 86'400 * second, 2 * second,
               "how long GETs are measured; a number without unit counts seconds"),
     given_as::seconds, "N"},
    {described("--record", option_kind::text, "", 1, 4095, "", "write what happened, as the event lines of a trace"),
     given_as::once, "FILE"},
    {described("--json", option_kind::boolean, "", 0, 1, false,
               "one JSON document on standard output instead of the table"),
     given_as::flag, ""},
    {described("--ucx-library", option_kind::text, "", 1, 4095, "", "what to load instead of the usual UCX library"),
     given_as::hidden, "FILE"},
    {described("--serve", option_kind::count, "", 0, UINT64_MAX, 0, "be a peer"), given_as::hidden, "SEED"},
    {described("--parent", option_kind::count, "", 0, pid_max, 0, "of the process to end with"), given_as::hidden,
     "PID"},
};

inline constexpr std::string_view paragraphs[] = {
    "Runs the real core, end to end, with real bytes: registration, growth and reclaim of arenas, GETs between two "
    "processes with every byte checked, cancellation in flight, a peer that is killed in mid-transfer and one that "
    "stands "
    "still, shutdown to a deadline.",
    "Finds what the machine has, says what it does not have, and prints a table: part, check, result (ok, failed, "
    "absent), figure. It loads UCX itself, after setting UCX's environment.",
};

inline constexpr tool::titled_text exits[] = {
    {"0", "nothing failed, and at least one part ran"},
    {"1", "something failed, or nothing ran"},
    {"2", "wrong usage; one line on standard error says what"},
};

}  // namespace table

inline constexpr tool::program described_program = {
    "holdfast-smoke", "does this machine behave as Holdfast assumes?", table::paragraphs, table::options, false,
    table::exits};

}  // namespace holdfast::smoke
