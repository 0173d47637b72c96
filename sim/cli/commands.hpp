// The commands of holdfast-sim.
//
// Threading   One thread; runs are made in children.
// Failure     `usage_error` for wrong input, before anything was done; the answer is the exit code of the contract.
#pragma once

#include <sim/cli/arguments.hpp>

namespace holdfast::sim {

// Exit codes that other people's scripts depend on.
enum exit_code : int {
  exit_fine = 0,
  exit_violation = 1,
  exit_usage = 2,
  exit_replay_differs = 3,
  exit_not_deterministic = 4,
  exit_not_exercised = 5,
};

int list_command(const arguments& given);
int run_command(const arguments& given);
int campaign_command(const arguments& given);
int explore_command(const arguments& given);
int replay_command(const arguments& given);
int models_command(const arguments& given);

}  // namespace holdfast::sim
