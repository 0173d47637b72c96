// What scenarios may set about the simulated UCX of a host.
//
// Ownership   The host's; kept over its lives.
// Units       Bytes; parts of a thousand; virtual nanoseconds.
#pragma once

#include <sim/kernel/host.hpp>

#include <cstddef>
#include <cstdint>

namespace holdfast::sim {

struct ucp_settings {
  /// Whether the host has a card for one-sided transfers. Endpoints between two such hosts then have a queue pair: see
  /// sim/drivers/ucp_rdma.cpp.
  bool rdma = false;
  /// Time after which a transfer that finds no way, or no queue pair at the other end, kills its own.
  std::int64_t rdma_retry_ns = 500'000'000;
  /// A GET arrives in pieces of at least this size, at most `pieces_max` of them.
  std::size_t piece_bytes_min = 8 * 1024;
  std::size_t pieces_max = 4;
  /// What one send over tcp takes of a reply.
  std::size_t segment_bytes = 516 * 1024;
  /// How often a GET of at most `inline_bytes_max` finishes before it returns (never over real tcp, but allowed).
  unsigned inline_permille = 60;
  std::size_t inline_bytes_max = 256;
  /// How often a send of an active message over a connected endpoint answers a request instead of finishing.
  unsigned send_posted_permille = 250;
  /// Larger active messages arrive as a rendezvous descriptor.
  std::size_t eager_bytes_max = 32 * 1024;
  /// How often an active message overtakes the one before it.
  unsigned reorder_permille = 30;
  /// How often a forced close answers a request instead of finishing.
  unsigned close_posted_permille = 200;
  /// Longest time from a forced close, or an error handler, to the end of an operation that was outstanding.
  std::int64_t cancel_spread_ns = 80'000;
  /// How often a new registration gets the smallest key number that is free, as a driver that recycles its keys would:
  /// the packed bytes are then those of a key that is gone. Drawn by a stream of its own.
  unsigned key_reuse_permille = 500;
  /// How often all keys of a life are the same bytes, as those of tcp are: they say nothing at all.
  unsigned key_empty_permille = 200;
  /// How often a GET with a key that was unpacked for an earlier registration of the same bytes reads what was there
  /// then, and so nothing of worth. Only the key cache of a program can bring that about.
  unsigned stale_key_permille = 700;
  /// How often an endpoint towards the memory of a process that is gone is refused; else it is made, and hangs.
  unsigned dead_address_permille = 500;
  /// How often a flushed close through shared memory ends at once when nothing is outstanding.
  unsigned idle_flush_permille = 500;
  /// Messages and pieces that one progress call handles.
  unsigned progress_batch = 4;
};

ucp_settings& ucp_settings_of(host& h);

}  // namespace holdfast::sim
