// One host with pinned memory straight over the scripted device: no runtime, no transport, no peers.
//
// Why this exists: what pinned memory promises has to hold for every answer of the contract with its backend, and most
// of these no library of today gives. Without a transport a run costs a fraction of a fleet's, so there can be many
// more of them, and the smallest can be explored to the end.
//
// Ops: those of pool_user.hpp, and
//   get slot seed [bytes] [stale]         fetches the pattern `seed` into the slot's buffer, waits; stale=1: the
//                                         reference is of another life of the peer
//   get_start slot seed [bytes] [stale]   the same without waiting
//   reclaim                               a sweep now; ok=0 if it found no arena that nobody uses
//   reference slot                        for a peer, to the slot's buffer; ok=0 if its arena is out of service
//   shutdown [deadline_ns]                while others go on
//   release [deadline_ns]                 tears the device down and shows its witness; ok=0 unless a shutdown ended
//   abandon                               in the end the facade is destroyed without a shutdown
//   snapshot                              its sums must equal a recount (PM-I51)
// When all ops are over: the shutdown, the device's end, what its witness proves, and every buffer dropped, some before
// the shutdown and some after. A host whose device did not end, or may still write, ends as such a process should: it
// exits at once, and leaves what is left.
//
// Ownership   The stage lives in kernel memory for the run; everything of the core on the stack of the fiber "main".
// Units       Bytes, virtual nanoseconds.
// Threading   One OS thread.
// Failure     A broken promise is a violation.
#pragma once

#include <sim/backend/scripted_backend.hpp>
#include <sim/scenarios/scenario.hpp>

#include <holdfast/pinned/settings.hpp>

#include <cstdint>
#include <expected>
#include <memory>
#include <string>

namespace holdfast::sim {

struct scripted_settings {
  holdfast::pinned::settings pool{.initial_arena_bytes = 4 * 4096,
                                  .max_arena_bytes = 16 * 4096,
                                  .dedicated_arena_min = 8 * 4096,
                                  .registered_bytes_budget = 64 * 4096};
  scripted_options device;
  unsigned executor_threads = 1;
  /// Times that shutdowns and ends of the device get if the op does not say. Negative: for ever.
  std::int64_t shutdown_ns = 1'000'000;
  std::int64_t teardown_ns = 1'000'000;
  /// Buffers of one byte that are allocated, into the slots from 0 on, before the ops begin.
  std::int64_t prepared = 0;
  /// A search of all schedules is about the ops, not about setting up and the end.
  bool search_ops_only = false;
  /// Whether they are dropped again before that: then the arenas are empty.
  bool prepared_dropped = false;
  /// After so long the stage ends the pool and the device under ops that still wait: for plans in which an answer never
  /// comes. Negative: it waits for ever.
  std::int64_t patience_ns = -1;
  /// When it ends them in any case, if a fault may keep ops waiting for ever.
  std::int64_t give_up_ns = 30'000'000'000;
};

/// For exhaustive exploration: no time passes and no deadline waits but where a fault or an op says so; arenas of one or
/// two granules.
scripted_settings small_stage();

/// Builds the host "a" and starts it. Keep the answer until the run is over. An error sentence if an op makes no sense.
std::expected<std::shared_ptr<void>, std::string> start_scripted(world& w, const scripted_settings& how,
                                                                 const plan& what);

}  // namespace holdfast::sim
