// A random sequence of troubles over a fleet, and what must hold after any of them.
//
// Why this exists: each trouble alone has its test. What a second one does to the answer to the first is found by chance
// only, and by much of it.
//
// After the troubles everything is made well: links healed, processes resumed and started. Then every node must get
// bytes from every other, everything pending must end, the books must agree, registered bytes must come back to what
// transfers of unknown fate hold, and every process must end by its deadline with nothing left.
//
// Ownership   Of one call.
// Units       Durations.
// Threading   One thread.
// Failure     Sentences; the seed is the caller's to print.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <tests/processes/fleet.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace holdfast::testing::processes {

struct sequence {
  fleet::shape shape;
  std::chrono::milliseconds troubles{8'000};
};

struct sequence_result {
  std::vector<std::string> failures;
  /// What was done, and what nodes counted: kills, stops, starts, ends, cuts, fetched, failed, ...
  std::map<std::string, std::uint64_t> counts;
  std::string text() const;
};

sequence_result run_sequence(const sequence& what);

}  // namespace holdfast::testing::processes
