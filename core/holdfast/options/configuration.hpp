// The options in force, and where each of them came from.
//
// Why this exists: "which value does it run with, and who said so" is asked in the middle of a failure. Everything that
// was given is read before anything starts; what is wrong is said all at once, and nothing is applied in part.
//
// Order       Argument, environment, file, default: the first that names an option decides, and the others are read all
//             the same, so that what is wrong in them is found now.
// Ownership   Values.
// Threading   Values; `resolve` is a pure function of what it is given.
// Failure     Sentences, each with place, option, value and range. An unknown variable with our prefix is a warning.
//             Texts need memory: std::bad_alloc.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/options/option.hpp>
#include <holdfast/options/value.hpp>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::options {

enum class origin_kind : std::uint8_t { initial, file, environment, argument };

/// "default", "file", "environment", "argument".
std::string_view name_of(origin_kind kind) noexcept;

struct origin {
  origin_kind from = origin_kind::initial;
  std::string file;
  unsigned line = 0;
};

/// A value as somebody wrote it.
struct assignment {
  /// Of an argument and in a file: "pinned.unmap_timeout"; of the environment: the variable.
  std::string name;
  std::string value;
  /// In a file.
  std::string file = {};
  unsigned line = 0;
};

struct sources {
  std::vector<assignment> arguments;
  /// All variables may be given; those without our prefix are skipped.
  std::vector<assignment> environment;
  std::vector<assignment> file;
};

/// What was wrong.
struct refusal {
  static constexpr std::size_t sentences_max = 16;
  std::vector<std::string> sentences;
  /// Beyond `sentences_max`.
  std::size_t more = 0;

  void add(std::string sentence);
};

class configuration {
 public:
  struct setting {
    option_value value;
    origin from;
  };

  /// The defaults.
  configuration();

  const setting& of(option_id which) const noexcept { return settings_[static_cast<std::size_t>(which)]; }
  std::uint64_t number(option_id which) const noexcept { return of(which).value.number; }
  const std::string& text(option_id which) const noexcept { return of(which).value.text; }
  /// "argument --pinned.unmap_timeout", "environment HOLDFAST_PINNED_UNMAP_TIMEOUT", "file holdfast.toml:3", "default".
  std::string origin_text(option_id which) const;
  /// Variables with our prefix that nobody knows, each a sentence.
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }

 private:
  friend std::expected<configuration, refusal> resolve(const sources& given);
  std::vector<setting> settings_;
  std::vector<std::string> warnings_;
};

std::expected<configuration, refusal> resolve(const sources& given);

/// The option of that name, or null.
const option_description* find_option(std::string_view name) noexcept;
/// The known name that is nearest to a wrong one, or empty if none is near.
std::string_view nearest_option(std::string_view name);

}  // namespace holdfast::inline HOLDFAST_ABI::options
