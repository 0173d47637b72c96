// Arenas that are in service or were, and the spans cut from them.
//
// Why this exists: grants, holds and retirements are judged against each other.
//
// Ownership   The books own their records, of one host and one run.
// Units       Bytes; granules of 4096 bytes where spans are meant.
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

struct arena_record {
  std::uint64_t region = none;
  std::uint64_t bytes = 0, charge = 0;
  bool dedicated = false, adopted = false;
  std::uint32_t published = 0, retired = 0, settled = 0;
  std::uint32_t unmaps = 0;
  std::uint64_t reason = none;  // of its retirement
  bool forced = false;
  // Numbers of the events. `served`: whoever began to search afterwards can find it.
  std::uint64_t published_event = 0, served_event = none, released_event = 0, retired_event = 0, quiet_event = 0;
  std::int64_t quiet_since_ns = 0;  // last hold dropped
  moment retired_at;
  moment empty_since;           // nobody has a span; not set: somebody has, or never had
  moment above_floor_since;     // without it, as many pooled bytes are left as are kept warm
  std::uint64_t said_free = 0;  // granules, as the last event said
  std::uint64_t holds = 0;
  std::uint64_t spans_granted = 0;
  std::vector<std::uint64_t> live;  // spans, by offset
  void reset() {
    std::vector<std::uint64_t> kept = std::move(live);
    kept.clear();
    *this = arena_record{};
    live = std::move(kept);
  }
};

struct span_record {
  std::uint64_t generation = none;
  std::uint64_t offset = 0, size = 0;  // granules
  std::uint64_t length = 0;
  std::uint64_t operation = none;  // the last that borrowed it
  std::uint64_t collides = none;   // a span that was live in its granules when it was granted
  std::uint32_t granted = 0, released = 0;
  std::int32_t holds = 0;
  bool lent = false;
  bool quarantined = false;
  bool released_wrong = false;  // the release named other granules than the grant
  bool live() const noexcept { return granted != 0 && released < granted; }
};

struct arena_books {
  id_table<arena_record> arenas;
  id_table<span_record> spans;
  std::uint64_t holds = 0;
  // What its pools were told about the sizes of arenas; 0: nobody said.
  std::uint64_t arena_initial_bytes = 0, arena_max_bytes = 0, page_bytes = 0;

  void forget_arenas() noexcept;
  /// Granules of the spans that live in an arena.
  std::uint64_t taken_granules(const arena_record& a) noexcept;
  /// Granules of the longest free range of an arena, by the spans that live in it.
  std::uint64_t longest_free(const arena_record& a) noexcept;
};

}  // namespace holdfast::invariants
