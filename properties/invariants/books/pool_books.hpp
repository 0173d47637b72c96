// The budget, and the pools that spend it: growth, reclamation, shutdown.
//
// Why this exists: what a pool may do depends on what it was told and on how far its shutdown is.
//
// Ownership   The books own their records, of one host and one run.
// Units       Bytes, virtual nanoseconds.
// Threading   One OS thread.
// Failure     None: what was never introduced changes nothing.
#pragma once

#include <properties/invariants/books/vocabulary.hpp>
#include <properties/invariants/id_table.hpp>

#include <cstdint>

namespace holdfast::invariants {

struct ledger_record {
  std::uint64_t ceiling = none;  // none: not known
  std::uint64_t charged = 0;     // as core says
  std::uint64_t before = 0;      // and before the last event
  std::uint64_t open = 0, committed = 0;
  std::uint64_t refusals = 0;
  bool counted_down_below = false;  // more came back than was out
  bool corrupt = false;
};

struct pool_record {
  // As it was opened. Times: `never`.
  bool opened = false, pressure = false;
  std::int64_t reclaim_after_ns = never;
  std::uint64_t retain_bytes = 0, retries = 0;
  std::uint32_t building = 0;  // arenas of both kinds
  std::uint32_t pressure_sweeps = 0, reliefs = 0;
  std::uint64_t sweep_event = 0;  // of its shutdown
  std::uint32_t growing = 0;      // pooled arenas that are being built
  std::uint64_t claimed_event = 0;
  std::uint64_t pooled = 0, pooled_at_claim = 0;  // pooled arenas in service: now, and when a grower searched last
  bool overlapped = false;                        // the growth that began last began beside another
  // The gates that its shutdown closed, in order: of operations, then of transfers.
  struct closed_gate {
    std::uint64_t gate = none;
    bool drained = false;
  };
  closed_gate operations, transfers;
  std::uint64_t step = none;
  std::uint32_t shutdowns = 0, ended = 0;
  std::int64_t started_ns = 0, started_stalled_ns = 0, deadline_ns = 0;
  std::uint32_t swept = 0;  // arenas taken by the shutdown
};

/// The sweep under pressure of one allocation.
struct relief_record {
  std::uint32_t relieved = 0, refused = 0;
};

/// Attempts are numbered within a pool.
constexpr std::uint64_t relief_id(std::uint64_t pool, std::uint64_t attempt) noexcept { return pool << 40 | attempt; }

struct pool_books {
  id_table<ledger_record> ledgers;
  id_table<pool_record> pools;
  id_table<relief_record> reliefs;  // by `relief_id`
  std::uint32_t gates_closed = 0;
  std::int64_t teardown_due_ns = never, teardown_stalled_ns = 0;

  void forget_pools() noexcept;
};

}  // namespace holdfast::invariants
