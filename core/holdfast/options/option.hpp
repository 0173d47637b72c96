// What an option is, and the table of all of them.
//
// Why this exists: an option that is declared in one place for the struct, in another for the help and in a third for
// the file disagrees with itself within a year.
//
// Ownership   Constants.
// Units       Sizes in bytes, durations in nanoseconds, lengths of texts and lists in characters.
// Threading   Any.
// Failure     None.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::options {

enum class option_kind : std::uint8_t {
  size,               // bytes, or with a suffix: 64MiB
  count,              // a whole number
  duration,           // with a unit: 250ms
  duration_or_never,  // the same, or never
  boolean,            // true or false
  choice,             // one of `choices`
  text,               // printable
  list,               // of words, separated by commas
};

/// Whether values of this kind are numbers; the others are texts.
constexpr bool is_number(option_kind kind) noexcept { return kind < option_kind::choice; }

/// A default: of a number or of a text.
struct initial_value {
  std::uint64_t number = 0;
  std::string_view text;

  template <std::integral Number>
  constexpr initial_value(Number value) noexcept : number(static_cast<std::uint64_t>(value)) {}
  constexpr initial_value(const char* value) noexcept : text(value) {}
};

struct option_description {
  std::string_view subsystem;  // "pinned"
  std::string_view name;       // "pinned.unmap_timeout"
  std::string_view variable;   // "HOLDFAST_PINNED_UNMAP_TIMEOUT"
  option_kind kind = option_kind::text;
  std::string_view choices;  // of a choice, separated by |
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  initial_value initial{""};
  std::string_view since;  // the version that had it first
  std::string_view text;

  /// The name without its subsystem: the key in a file.
  constexpr std::string_view key() const noexcept {
    return subsystem.empty() ? name : name.substr(subsystem.size() + 1);
  }
};

enum class option_id : std::uint8_t {
#define HOLDFAST_PINNED_OPTION(name, ...) pinned_##name,
#define HOLDFAST_RUNTIME_OPTION(name, ...) runtime_##name,
#define HOLDFAST_TRANSPORT_OPTION(name, ...) transport_##name,
#define HOLDFAST_UCX_OPTION(name, ...) transport_##name,
#include <holdfast/options/options.def>
};

/// Of two options of which one may not exceed the other.
struct order_rule {
  option_id lower, upper;
};

/// A variable with our prefix that is no option.
struct other_variable {
  std::string_view name;
  std::string_view text;
};

/// In the order of `option_id`.
std::span<const option_description> option_table() noexcept;
std::span<const order_rule> order_rules() noexcept;
std::span<const other_variable> other_variables() noexcept;
const option_description& description_of(option_id which) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::options
