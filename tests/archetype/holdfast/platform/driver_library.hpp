// Archetype of D1 to D3: no default state, no handle.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <expected>
#include <span>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::platform {

struct environment_setting {
  const char* name;
  const char* value;
};

class driver_library {
 public:
  driver_library() = delete;
  driver_library(driver_library&&) noexcept;
  static std::expected<driver_library, std::string> open(const char* file,
                                                         std::span<const environment_setting> settings);
  void* symbol(const char* name) const noexcept;
};

std::string environment_value(const char* name);

}  // namespace holdfast::inline HOLDFAST_ABI::platform
