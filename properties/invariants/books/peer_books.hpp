// Connections to peers, their endpoints and keys, and which lives of a peer are over.
//
// Why this exists: who the peer is, and what of it may not be used any more.
//
// Ownership   The books own their records, of one host and one run.
// Units       Virtual nanoseconds.
// Threading   One OS thread.
// Failure     None: what was never introduced changes nothing.
#pragma once

#include <properties/invariants/books/vocabulary.hpp>
#include <properties/invariants/books/moment.hpp>
#include <properties/invariants/id_table.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace holdfast::invariants {

struct connection_record {
  std::uint64_t state = connection_state::unseen;
  std::uint64_t before = connection_state::unseen;
  std::uint64_t worker_id = 0, incarnation = 0;
  std::uint32_t greeted = 0, lost = 0, reported = 0;
  moment began;                          // as an attempt
  bool probing = false;                  // greeted before the capabilities were told
  std::uint64_t lost_at_call = none;     // of the library's progress: an error was reported as its loss
  std::uint32_t gets_out = 0;            // submitted on it and not ended
  std::vector<std::uint64_t> waiting{};  // GETs whose turn has not come, in order
  void reset() {
    std::vector<std::uint64_t> kept = std::move(waiting);
    kept.clear();
    *this = connection_record{};
    waiting = std::move(kept);
  }
};

struct endpoint_record {
  std::uint64_t state = endpoint_state::unseen;
  std::uint64_t before = endpoint_state::unseen;
  std::uint64_t connection = none;
  std::uint64_t lane = endpoint_lane::control;
  std::uint32_t failed = 0;
  std::uint64_t life = none;  // incarnation that its first connection greeted, when it was opened
};

/// An endpoint of the library, as the library names it.
struct lane_record {
  bool shared = false;
  std::uint32_t closes = 0;
  std::uint64_t operation = none;  // that posted on it last
};

struct key_record {
  std::uint64_t state = key_state::unseen;
  std::uint64_t connection = none;
  std::uint32_t destroyed = 0;
  std::uint32_t in_use = 0;             // operations that were posted with it and have not ended
  std::uint32_t in_use_at_the_end = 0;  // when it was destroyed
  bool after_end = false;               // used after its destruction
};

struct peer_books {
  id_table<connection_record> connections;
  id_table<endpoint_record> endpoints;
  id_table<lane_record> lanes;
  id_table<key_record> keys;
  id_table<std::uint64_t> operation_keys;      // operation -> key
  id_table<std::uint64_t> newest_incarnation;  // worker id -> as greeted last
  id_table<std::uint64_t> replaced_incarnation;
  std::int64_t connect_timeout_ns = 0;  // 0: nobody said
  std::uint64_t connections_max = 0;    // 0: nobody said

  void forget_peers() noexcept;
  /// What a transport remembers of its peers' lives it forgets with them.
  void forget_lives() noexcept;
};

}  // namespace holdfast::invariants
