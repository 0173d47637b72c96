// The command line of holdfast-smoke.
//
// Why this exists: help, ranges and error messages come from one table.
//
// Ownership   A value.
// Units       Bytes, counts, nanoseconds.
// Threading   One thread.
// Failure     `usage_error`, one sentence; only main catches it.
#pragma once

#include <holdfast/platform/abi.hpp>

#include "tool/program.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::smoke {

using tool::usage_error;

struct options {
  bool ucx = false, verbs = false, cuda = false, host = false;
  std::uint64_t bytes = 0;
  unsigned peers = 0;
  std::chrono::nanoseconds seconds{};
  std::string record;  // empty: nowhere
  bool json = false;
  /// For the loader; empty: the library's usual name.
  std::string ucx_library;
  /// This process is a peer of another, and serves memory with this pattern.
  std::optional<std::uint64_t> serve_seed;
  /// Process that started this peer.
  int serve_parent = 0;
};

/// None: help or version was asked for and printed.
std::optional<options> parse(int argc, const char* const* argv);

}  // namespace holdfast::smoke
