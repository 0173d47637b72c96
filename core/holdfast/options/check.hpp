// Members of settings structs against the table.
//
// Why this exists: an embedder that fills a struct is held to the same limits as an operator who writes a file.
//
// Ownership   None.
// Units       As option.hpp; a negative duration is a large number here, and refused as one.
// Threading   Pure functions.
// Failure     out_of_range; words are "<member> <value> not in <low>..<high>", numbers the three of them. Asks for no
//             memory.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/options/option.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::options {

result<void> check_number(option_id which, const char* operation, const char* member, std::uint64_t value) noexcept;
/// The length of a text.
result<void> check_text(option_id which, const char* operation, const char* member, std::string_view value) noexcept;
/// The upper of two members that have to be in order: from `lower` to the limit of the table.
result<void> check_above(option_id upper, const char* operation, const char* member, std::uint64_t lower,
                         std::uint64_t value) noexcept;

/// What the table compares of a member.
template <std::integral Number>
constexpr std::uint64_t number_of(Number value) noexcept {
  return static_cast<std::uint64_t>(value);
}
template <class Rep>
constexpr std::uint64_t number_of(std::chrono::duration<Rep, std::nano> value) noexcept {
  return static_cast<std::uint64_t>(value.count());
}

/// Of either kind.
template <class Member>
result<void> check_member(option_id which, const char* operation, const char* member, const Member& value) noexcept {
  if constexpr (std::convertible_to<const Member&, std::string_view>)
    return check_text(which, operation, member, value);
  else
    return check_number(which, operation, member, number_of(value));
}

}  // namespace holdfast::inline HOLDFAST_ABI::options
