// What this machine is, as far as it matters for memory that is registered.
//
// Ownership   Values. Units: bytes, counts. Threading: any. Failure: what cannot be read is left out.
#pragma once

#include <holdfast/platform/abi.hpp>

#include "smoke/checks.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::smoke {

/// UINT64_MAX = unlimited.
struct lock_limits {
  std::uint64_t soft_bytes = 0;
  std::uint64_t hard_bytes = 0;
};
lock_limits locked_memory_limits() noexcept;
/// "RLIMIT_MEMLOCK 8 MiB (hard 8 MiB)".
std::string limits_text(const lock_limits& limits);

std::vector<fact> machine_facts();

/// The build id of this program, hexadecimal; empty: it has none.
std::string program_build_id();

}  // namespace holdfast::smoke
