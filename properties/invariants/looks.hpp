// What a stage saw when it looked at core itself, at a moment at which core may be looked at.
//
// Why this exists: events and hardware say what happened. A gauge and a snapshot are what core says of itself, so
// somebody has to read them: a stage does, and hands over what it read. The judgment stands here, with its number, its
// sentence and its count, as of any other promise.
//
// Ownership   Values are read during the call.
// Units       Bytes.
// Threading   One OS thread, in kernel scope.
// Failure     A broken promise is reported through the world.
#pragma once

#include <holdfast/pinned/snapshot.hpp>

#include <cstdint>

namespace holdfast::sim {
class world;
}

namespace holdfast::invariants {

/// The gauge of registered bytes of the host with index `host`, at a quiet point of its ledger (PM-I36).
void look_at_gauge(sim::world& w, std::uint16_t host, std::uint64_t registered_bytes);

/// What the pools of that host were told about the sizes of arenas (PM-I16).
void told_arena_sizes(sim::world& w, std::uint16_t host, std::uint64_t initial_bytes, std::uint64_t max_bytes,
                      std::uint64_t page_bytes);

/// What the transport of that host was told: calls of the library between two looks at the queue (TP-I15), how long an
/// attempt to connect may last (TP-I18), and how many connections it may have (TP-D52).
void told_transport(sim::world& w, std::uint16_t host, std::uint64_t progress_batch, std::int64_t connect_timeout_ns,
                    std::uint64_t connections_max);

/// When the shutdown that begins now has to be over, its transport's part included (TP-I20, W-7); `never`, which is
/// 2^63-1, when it has returned.
void told_shutdown(sim::world& w, std::uint16_t host, std::int64_t deadline_ns);

/// A program calls the transport and waits for the answer, or has it (TP-I1).
void told_call(sim::world& w, std::uint16_t host, bool waits);

/// Two hosts that met, with nothing planned that could part them: whether a GET found its peer `connected` (TP-I11).
void look_at_meeting(sim::world& w, std::uint16_t host, bool connected);

/// A snapshot, taken at any time (PM-I51).
void look_at_snapshot(sim::world& w, std::uint16_t host, const holdfast::pinned::memory_snapshot& taken);

}  // namespace holdfast::invariants
