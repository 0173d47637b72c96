// What a pool looks like right now, for people and for checks.
//
// Why this exists: a report has to say where every byte is. Sums are computed from the lists that stand beside them, so
// that a snapshot never contradicts itself, though it is not one instant (spec/pinned-memory 15).
//
// Ownership   A value.
// Units       Bytes, counts.
// Threading   A value.
// Failure     Taking one allocates; that may throw std::bad_alloc into the caller.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/quarantine.hpp>
#include <holdfast/pinned/arena.hpp>
#include <holdfast/pinned/backend.hpp>
#include <holdfast/pinned/settings.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::pinned {

class pool_core;

struct arena_snapshot {
  std::uint64_t generation = 0;
  arena_state state{};
  std::uint64_t size_bytes = 0;
  std::uint64_t charge_bytes = 0;
  bool dedicated = false;
  std::uint64_t live = 0;
  std::uint64_t holds = 0;
  std::uint64_t quarantined_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t largest_free_bytes = 0;
  unmap_progress unmap{};
  std::uint64_t unmap_attempts = 0;
  std::int64_t empty_since_ns = reclaim_never;  // as a sweep saw it; never: in use, or no sweep came by yet
  std::int64_t retired_ns = 0;                  // of a retiring one
  retire_reason why_retired{};
};

struct memory_snapshot {
  struct {
    std::uint64_t registered_bytes = 0, ceiling_bytes = 0, reserved_open_bytes = 0;
    bool corrupt = false;
  } budget;
  struct {
    std::string_view state;  // open, closing, swept, released
    std::uint64_t tickets = 0, transfers = 0;
  } gate;
  struct {
    std::uint64_t arena_count = 0, live_spans = 0, in_flight = 0, maps_outstanding = 0, waiting = 0;
    std::int64_t reclaim_after_ns = reclaim_never;
    std::uint64_t retain_bytes = 0;
  } pool;
  capabilities backend;
  std::uint64_t incarnation = 0;
  std::vector<arena_snapshot> arenas;    // in service
  std::vector<arena_snapshot> retiring;  // registration not known to be gone
  std::vector<quarantine_view> quarantined;
  quarantine_sum abandoned;  // leaked on purpose: no evidence will come

  std::string to_json() const;
};

memory_snapshot take_snapshot(pool_core& pool);

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
