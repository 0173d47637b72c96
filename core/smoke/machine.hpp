// What this machine is, as the document of a smoke check says it.
//
// Ownership   Values. Units: bytes, counts. Threading: any. Failure: what cannot be read is left out.
#pragma once

#include <holdfast/platform/abi.hpp>

#include "smoke/checks.hpp"
#include "tool/machine.hpp"

#include <string>
#include <vector>

namespace holdfast::smoke {

using tool::lock_limits;
using tool::locked_memory_limits;
using tool::program_build_id;

/// "RLIMIT_MEMLOCK 8 MiB (hard 8 MiB)".
std::string limits_text(const lock_limits& limits);

std::vector<fact> machine_facts();

}  // namespace holdfast::smoke
