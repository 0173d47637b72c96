// A command line, understood.
//
// Why this exists: commands ask for values that are already checked against the option table.
//
// Threading   One thread. Failure: `usage_error`, one sentence; only main catches it.
#pragma once

#include <sim/cli/option_table.hpp>
#include <sim/scenarios/scenario.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sim {

struct usage_error {
  std::string sentence;
};

class arguments {
 public:
  /// Empty command: help or version was asked for and printed.
  static arguments parse(int argc, const char* const* argv);

  const std::string& command() const noexcept { return command_; }
  bool flag(std::string_view name) const;
  bool given(std::string_view name) const;
  /// The given value, or the initial one; empty if there is neither.
  std::string text(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  std::uint64_t count(std::string_view name) const;
  std::optional<std::uint64_t> count_if_given(std::string_view name) const;
  std::int64_t duration_ns(std::string_view name) const;
  std::pair<std::uint64_t, std::uint64_t> pair(std::string_view name) const;  // of seeds and shard
  parameters settings() const;                                                // of --set

  /// How this program was called, for commands that are printed.
  const std::string& program() const noexcept { return program_; }

 private:
  std::string program_;
  std::string command_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

/// "64MiB" = 67108864, "250ms" = 250000000, "17" = 17. Empty: none of these, or beyond 63 bits.
std::optional<std::int64_t> parse_number(std::string_view text);
/// "60s", "250ms", "1us", "1ns", "2min"; a number without unit is none.
std::optional<std::int64_t> parse_duration(std::string_view text);

}  // namespace holdfast::sim
