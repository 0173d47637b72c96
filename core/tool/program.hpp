// A program of this project as its user meets it: options, help, what is printed on wrong usage.
//
// Why this exists: help, ranges, messages and man pages of every program come from the same kind of table as the
// library's options, and read the same.
//
// Ownership   Tables are constants; a command line is a value.
// Units       As options/option.hpp.
// Threading   One thread.
// Failure     `usage_error`, one sentence; only a main catches it.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/options/configuration.hpp>
#include <holdfast/options/option.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::tool {

struct usage_error {
  std::string sentence;
};

enum class given_as : std::uint8_t {
  flag,     // no value
  once,     //
  many,     // may be given more than once
  seconds,  // once; a plain number counts seconds
  hidden,   // once, and not shown: for this program's own children and for tests
};

struct program_option {
  /// Its name is as it is typed, "--bytes"; an empty default: none.
  holdfast::options::option_description what;
  given_as how = given_as::once;
  /// What stands for the value in help, "N".
  std::string_view placeholder;
};

struct titled_text {
  std::string_view title;
  std::string_view text;
};

struct program {
  std::string_view name;
  /// One line, for a list of programs.
  std::string_view summary;
  std::span<const std::string_view> paragraphs;
  std::span<const program_option> options;
  /// Whether it takes every option of the library too, and reads environment and file.
  bool configured = false;
  std::span<const titled_text> exits;
};

/// The line of one option of a program.
constexpr holdfast::options::option_description described(std::string_view name, holdfast::options::option_kind kind,
                                                          std::string_view choices, std::uint64_t low,
                                                          std::uint64_t high, holdfast::options::initial_value initial,
                                                          std::string_view text) noexcept {
  return {"", name, "", kind, choices, low, high, initial, "0.1", text};
}

class command_line {
 public:
  /// None: help or version was asked for and printed on standard output.
  static std::optional<command_line> parse(const program& of, int argc, const char* const* argv);

  bool has(std::string_view name) const noexcept;
  /// The one that was given, or the default; none if there is neither.
  std::optional<holdfast::options::option_value> value(std::string_view name) const;
  /// Each that was given.
  std::vector<std::string> texts(std::string_view name) const;
  /// Options of the library that were given, for `read_configuration`.
  const std::vector<holdfast::options::assignment>& overrides() const noexcept { return overrides_; }

 private:
  struct one {
    const program_option* what;
    holdfast::options::option_value value;
  };
  explicit command_line(const program& of) noexcept : of_(&of) {}
  const program_option* known(std::string_view name) const noexcept;

  const program* of_;
  std::vector<one> given_;
  std::vector<holdfast::options::assignment> overrides_;
};

/// For a terminal of 80 columns.
std::string help_text(const program& of);
/// `text` in lines of at most `columns`, each but the first behind `indent` spaces; no line break at the end.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns);
/// What is said of a value: its range and its default.
std::string value_text(const program_option& option);

}  // namespace holdfast::tool
