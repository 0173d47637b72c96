// Values of options: from text, to text.
//
// Why this exists: "64M" means two sizes and "250" no time at all. What can be misunderstood is refused, with what was
// meant in the sentence; and what is printed can be read back.
//
// Ownership   Values.
// Units       As option.hpp.
// Threading   Pure functions.
// Failure     One sentence without the option's name, "'64MB' is no size ...". Texts need memory: std::bad_alloc.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/options/option.hpp>

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::options {

struct option_value {
  /// Of a number; a duration that is never has the largest that 63 bits hold.
  std::uint64_t number = 0;
  /// Of the others; a list's words are separated by one comma.
  std::string text;

  friend bool operator==(const option_value&, const option_value&) = default;
};

option_value initial_of(const option_description& what);

std::expected<option_value, std::string> parse_value(const option_description& what, std::string_view text);
/// What `parse_value` reads back as the same value: "64MiB", "250ms", "never", "true".
std::string print_value(const option_description& what, const option_value& value);

/// Empty: the value is inside its range. Otherwise the sentence.
std::string objection(const option_description& what, const option_value& value);

/// "from 4KiB to 1GiB", "auto, ucx or host", "true or false".
std::string range_text(const option_description& what);
/// "size", "duration", ... as documentation names it.
std::string_view kind_text(option_kind kind) noexcept;

/// In quotes and cut, with what a terminal should not get replaced.
std::string in_quotes(std::string_view text);

}  // namespace holdfast::inline HOLDFAST_ABI::options
