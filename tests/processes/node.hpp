// One process of a fleet: a runtime over real UCX that serves, fetches, and does what it is told by lines.
//
// Why this exists: a process that is killed or stopped must be one of its own, started by executing this program anew,
// so that UCX is loaded after its environment.
//
// Lines on standard input:
//   peer PLACE SEED OFFER...   that neighbor's present life           dead PLACE          its process is gone
//   traffic on|off             fetch PLACE BYTES                      cancel              everything that is pending
//   revoke WORKER INCARNATION  close WORKER INCARNATION               state               numbers
//   calm                       answered when each neighbor served     quiet               answered when nothing is pending
//   end now|quiet              shutdown, and the end of the process
// Lines to descriptor 3:
//   offer SEED OFFER...        wrong SENTENCE                         fetched CODE        cancelled N
//   calm                       quiet                                  state KEY=N...      ended KEY=N...
//
// Ownership   Everything is of one call of `run_node`.
// Threading   One thread of its own, and those of the core.
// Failure     Sentences with `wrong`; exit status 0 if there was none and the shutdown left nothing.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <string>
#include <vector>

namespace holdfast::testing::processes {

inline constexpr int answers_descriptor = 3;

/// main of a node. `words` are KEY=VALUE: worker, listen, memory (0, 1), seed, bytes, bound_ms, parent.
int run_node(const std::vector<std::string>& words);

}  // namespace holdfast::testing::processes
