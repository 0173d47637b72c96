// What quarantines keep, and what they kept.
//
// Why this exists: an entry leaves once, with what it came with, on evidence of this stay.
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

/// Something that a quarantine keeps or kept.
struct quarantined_record {
  std::uint64_t quarantine = none;
  std::uint64_t bytes = 0, accepts = 0;
  std::uint64_t operation = 0, epoch = 0, context = 0;
  std::uint64_t first_fence = 0, last_fence = 0;  // stamps begun during this stay; 0: none
  std::uint32_t entered = 0, left = 0, abandoned = 0;
  bool inside() const noexcept { return entered > left + abandoned; }
};

struct quarantine_record {
  std::uint64_t entries = 0, bytes = 0;                // inside
  std::uint64_t entries_before = 0, bytes_before = 0;  // and before all were abandoned
};

struct quarantine_books {
  id_table<quarantined_record> quarantined[quarantine_kinds];  // by kind
  id_table<quarantine_record> quarantines;

  void forget_quarantines() noexcept;
};

}  // namespace holdfast::invariants
