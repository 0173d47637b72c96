// Simulated driver libraries: the doubles of sim/drivers, by the names of the real ones. Clauses D1 to D3.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <expected>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::platform {

struct environment_setting {
  const char* name;
  const char* value;
};

class driver_library {
 public:
  /// A library without a double, or one that the fault plan hides ("driver.open"), is an error.
  static std::expected<driver_library, std::string> open(const char* file,
                                                         std::span<const environment_setting> settings);
  void* symbol(const char* name) const noexcept;

 private:
  explicit driver_library(const char* file) noexcept : file_(file) {}
  const char* file_;
};

/// The environment of a simulated host is empty at first: only what `open` set is in it.
std::string environment_value(const char* name);

}  // namespace holdfast::inline HOLDFAST_ABI::platform
