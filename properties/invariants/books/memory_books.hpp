// Memory of a host: pages and registrations as the hardware has them, blocks and regions as core does.
//
// Why this exists: what a device can reach is the hardware's word, what was asked of it is core's; both stand here, joined.
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

/// Pages, as the hardware names them.
struct pages_record {
  std::uint64_t bytes = 0;
  std::uint64_t block = none;       // core's name
  std::uint64_t generation = none;  // of the arena that was published over them
  bool owned = false;
  bool refused = false;  // the system would not take them as a tombstone: nobody can give them back
};

/// A device's registration, as the hardware names it.
struct registration_record {
  std::uint64_t pages = none;
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t region = none;  // core's name
  bool alive = false;           // the device can reach the pages
  bool failed = false;          // a deregistration was answered without taking effect
  bool discharged = false;      // core was told that it is gone
};

/// Pages, as core names them.
struct block_record {
  std::uint64_t pages = none;
  std::uint64_t pool = none;
  std::uint64_t bytes = 0;
  std::uint32_t maps_open = 0;     // asked for and not answered
  std::uint32_t regions_open = 0;  // registered and not confirmed gone
  bool mapped = false;             // a registration was ever asked for
  bool freed = false;
};

/// A registration, as core names it.
struct region_record {
  std::uint64_t block = none;
  std::uint64_t registration = none;
  std::uint64_t bytes = 0;
  std::uint64_t charge = 0;  // committed for it
  bool settled = false;
  std::uint32_t unmaps = 0;  // submissions
  std::uint32_t unanswered = 0;
  std::uint32_t accepted = 0;  // submissions that were not refused
  bool last_refused = false;
  bool confirmed = false;
  bool forced = false;
  bool open = false;  // counted in its block's `regions_open`
};

struct memory_books {
  id_table<pages_record> pages;
  id_table<registration_record> registrations;
  id_table<block_record> blocks;
  id_table<region_record> regions;
  std::uint64_t registered_bytes = 0;  // over core's blocks, at the device, not confirmed gone
  bool registered_twice = false;       // pages had two registrations at a time

  void forget_memory() noexcept;
  /// The device's bytes of a registration count no longer against core's books.
  void discharge(registration_record& r) noexcept;
  /// A region that was confirmed gone, or given up by force.
  void end_region(region_record& region) noexcept;
};

}  // namespace holdfast::invariants
