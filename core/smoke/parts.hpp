// The parts of a machine that can be checked.
//
// Why this exists: main only decides which run.
//
// Ownership   Refers to what main owns.
// Threading   One thread.
// Failure     Rows of the table; nothing is thrown on purpose.
#pragma once

#include <holdfast/platform/abi.hpp>

#include "smoke/checks.hpp"
#include "smoke/options.hpp"
#include "smoke/processes.hpp"
#include "smoke/recording.hpp"

namespace holdfast::smoke {

struct surroundings {
  const options& given;
  checks& found;
  process_group& children;
  recording& record;
};

/// Registration in the kernel, and this machine's limits to it.
void check_host(surroundings& s);
/// Real bytes between processes, over UCX; and what happens when a peer dies or stands still.
void check_ucx(surroundings& s);

}  // namespace holdfast::smoke
