// A runtime whose options come from where operators put them: the environment and a file.
//
// Why this exists: core never looks at its surroundings, so that every run of it can be repeated. A program in
// production wants them looked at, once, before anything starts.
//
// Order       Arguments, then HOLDFAST_* variables, then the file, then defaults. The file is the one that HOLDFAST_CONFIG
//             names, or else holdfast.toml in the working directory if there is one.
// Ownership   Values; the host outlives the runtime.
// Units       As options/option.hpp.
// Threading   Reads the environment: call it where nobody changes that at the same time. Loading UCX changes it.
// Failure     By value. What was wrong with the options is said in full by `read_configuration`; an error of
//             `from_environment` holds the beginning of the first sentence.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/options/configuration.hpp>
#include <holdfast/runtime/runtime.hpp>

#include <expected>
#include <string>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI {

/// `overrides`: named as in options/options.def, "pinned.unmap_timeout", with values as text, "250ms".
std::expected<options::configuration, options::refusal> read_configuration(
    std::vector<options::assignment> overrides = {});

/// The file that `read_configuration` would read now, or empty.
std::string configuration_file();

/// Errors: invalid_argument (an option), and those of runtime::create. With runtime.backend = auto a machine on which
/// UCX is absent gets the host's backend.
result<runtime> from_environment(platform::host& host, std::vector<options::assignment> overrides = {});

}  // namespace holdfast::inline HOLDFAST_ABI
