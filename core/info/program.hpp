// holdfast-info's options and texts, for the program and for its man page.
#pragma once

#include <holdfast/platform/abi.hpp>

#include "tool/program.hpp"

namespace holdfast::info {

namespace table {

inline constexpr tool::program_option options[] = {
    {tool::described("--json", holdfast::options::option_kind::boolean, "", 0, 1, false,
                     "one JSON document on standard output instead of text"),
     tool::given_as::flag, ""},
};

inline constexpr std::string_view paragraphs[] = {
    "Prints what a support engineer asks first: version and build id; the backends that were found, and why others are "
    "not used; page sizes, NUMA nodes, huge pages; what may be locked and mapped; what protects pages from children; "
    "who "
    "handles signals; and every option with its value and where that came from.",
    "Options are read as a program does that calls holdfast::from_environment: put holdfast-info in the program's "
    "place, "
    "with the same variables in the same directory, and it shows what the program would run with. It loads UCX, after "
    "setting UCX's environment, opens a context and closes it; it makes no connection and registers nothing.",
};

inline constexpr tool::titled_text exits[] = {
    {"0", "the answer is on standard output, whatever was found"},
    {"2", "wrong usage, or options that are wrong; lines on standard error say what and where"},
};

}  // namespace table

inline constexpr tool::program described_program = {
    "holdfast-info", "what is here, and which options are in force", table::paragraphs, table::options, true,
    table::exits};

}  // namespace holdfast::info
