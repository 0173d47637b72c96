// An options file as assignments.
//
// Why this exists: the parser of TOML is large and knows nothing of options; core takes what it found as text, with the
// line it stood in.
//
// Ownership   Values.
// Units       Lines from 1.
// Threading   Pure functions.
// Failure     Sentences that begin with file and line.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/options/configuration.hpp>

#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::options {

/// Beyond this it is no options file.
inline constexpr std::size_t toml_bytes_max = 64 * 1024;
inline constexpr std::size_t toml_line_bytes_max = 1024;

/// In the order of lines. Keys that no option has are passed on, for `resolve` to name them; of options that are texts,
/// values without quotes are refused here, where the difference is still known. `file`: as messages name it.
std::expected<std::vector<assignment>, refusal> read_toml(std::string_view text, const std::string& file);

}  // namespace holdfast::inline HOLDFAST_ABI::options
