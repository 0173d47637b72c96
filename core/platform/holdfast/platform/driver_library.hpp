// Real driver libraries: dlopen after the environment is right. Clauses D1 to D3.
//
// Why at run time: one binary starts on machines without UCX, verbs or CUDA; and libucs, if it is loaded
// before UCX_MEM_EVENTS=n is in the environment, patches mmap and munmap of the whole process.
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
  /// Sets `settings` in the process's environment (ours win), then loads `file` ("libucp.so.0").
  /// The error is one sentence of the loader; the settings are made even then. A library is never unloaded: its
  /// code may be on a stack. Changing the environment is not safe beside a thread that reads it: call this early.
  static std::expected<driver_library, std::string> open(const char* file,
                                                         std::span<const environment_setting> settings);

  /// Address of an exported function, or null: a missing symbol is a missing capability.
  void* symbol(const char* name) const noexcept;

 private:
  explicit driver_library(void* handle) noexcept : handle_(handle) {}
  void* handle_;
};

/// The value of an environment variable now, or empty. Asked before `open`, for the warning that ours wins.
std::string environment_value(const char* name);

}  // namespace holdfast::inline HOLDFAST_ABI::platform
