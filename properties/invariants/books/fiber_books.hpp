// What each fiber did last, and the steps of workloads.
//
// Why this exists: core and the hardware name things differently; one call on one fiber causes both events, and joins them.
//
// Ownership   The books own their records, of one host and one run.
// Units       Bytes.
// Threading   One OS thread.
// Failure     None: what was never introduced changes nothing.
#pragma once

#include <properties/invariants/books/vocabulary.hpp>
#include <properties/invariants/id_table.hpp>

#include <cstdint>

namespace holdfast::invariants {

/// What one fiber did last, to join the two vocabularies.
struct fiber_record {
  std::uint64_t pages = none;
  std::uint64_t operation = none;
  std::uint64_t in_try_alloc = none;  // pool
  std::uint64_t try_event = 0, try_bytes = 0;
  std::uint64_t growing = none;   // pool, until the map is asked for
  std::uint64_t mapped = none;    // region, until its charge is committed
  std::uint64_t reclaims = none;  // pool that it sweeps
  std::uint64_t reclaim_event = 0;
  std::uint64_t in_gate_step = none;  // pool
  std::uint64_t held_span = none;     // waits for the number of its operation
  std::uint64_t last_lane = none;     // endpoint of the library for which it asked a GET last
};

/// A step of a workload.
struct step_record {
  std::uint32_t began = 0, ended = 0;
};

struct fiber_books {
  id_table<fiber_record> fibers;
  id_table<step_record> steps;

  void forget_fibers() noexcept;
};

}  // namespace holdfast::invariants
