// A file with what happened: a recorded trace, of header, events and end.
//
// Why this exists: a check that failed on somebody's machine has to be readable on another.
//
// Ownership   Owns the unfinished file: it has its name only when it is whole, and is removed otherwise.
// Units       Nanoseconds of the host's clock.
// Threading   One thread.
// Failure     By sentence.
#pragma once

#include <holdfast/platform/abi.hpp>

#include "smoke/checks.hpp"
#include "smoke/processes.hpp"

#include <holdfast/telemetry/event.hpp>

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::smoke {

class recording {
 public:
  explicit recording(process_group& group) noexcept : group_(group) {}
  ~recording();
  recording(const recording&) = delete;
  recording& operator=(const recording&) = delete;

  /// Empty: it is open. Without this call nothing is recorded.
  std::string open(const std::string& path);
  void add(std::string_view who, std::span<const event_record> events);
  /// Empty: the file is there, or there is none to write.
  std::string finish(const checks& found);

 private:
  void line(std::string text);

  process_group& group_;
  std::string path_, unfinished_;
  std::FILE* file_ = nullptr;
  int error_ = 0;
  std::uint64_t number_ = 0;
  std::int64_t last_ns_ = 0;
};

}  // namespace holdfast::smoke
