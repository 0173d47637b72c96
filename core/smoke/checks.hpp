// What was found, check by check: the table, the document, the exit code.
//
// Why this exists: the parts only say what they saw; how it is shown and what it means for scripts is decided once.
//
// Ownership   A value of main; parts get a reference.
// Units       Figures carry their units as text.
// Threading   One thread.
// Failure     None.
#pragma once

#include <holdfast/platform/abi.hpp>

#include "tool/machine.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::smoke {

enum class verdict : std::uint8_t { ok, failed, absent };
std::string_view name_of(verdict v) noexcept;

struct check {
  std::string part;
  std::string name;
  verdict result = verdict::ok;
  std::string figure;  // what was measured, or found
  std::string reason;  // why it failed or is absent
};

/// Facts of the machine, in the order in which a person wants to read them.
struct fact {
  std::string name;
  std::string text;
  std::uint64_t number = 0;
  bool is_number = false;
};

class checks {
 public:
  /// `table`: each check is printed there as it comes; null prints nothing.
  explicit checks(std::FILE* table) noexcept : table_(table) {}

  void ok(std::string_view part, std::string_view name, std::string figure);
  void failed(std::string_view part, std::string_view name, std::string reason, std::string figure = {});
  void absent(std::string_view part, std::string_view name, std::string reason);

  const std::vector<check>& all() const noexcept { return all_; }
  /// The first that failed, or null.
  const check* first_failure() const noexcept;
  /// 0: nothing failed and at least one part ran; 1 otherwise.
  int exit_code() const noexcept;
  std::string to_json(const std::vector<fact>& machine) const;

 private:
  void add(check one);

  std::FILE* table_;
  bool headed_ = false;
  std::vector<check> all_;
};

using tool::bytes_text;
/// "1 peer", "2 peers".
std::string count_text(std::uint64_t count, std::string_view noun);
/// "870 ns", "12.3 us", "45 ms", "1.9 s".
std::string time_text(std::int64_t ns);
/// "812 MB/s", "1.23 GB/s".
std::string rate_text(std::uint64_t bytes, std::int64_t ns);

}  // namespace holdfast::smoke
