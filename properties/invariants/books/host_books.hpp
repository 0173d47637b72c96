// All that is known of one host.
//
// Why this exists: a judgment goes across subjects (a hold on a span of an arena over a registration that a peer
// reads), so the books of all subjects lie open beside each other, and the questions that need several stand here.
//
// Ownership   The ghost owns one for each host that was heard of.
// Units       As each subject says; extents in bytes.
// Threading   One OS thread.
// Failure     A question about something that was never introduced is answered with null, false or `none`.
#pragma once

#include <properties/invariants/books/arena_books.hpp>
#include <properties/invariants/books/fiber_books.hpp>
#include <properties/invariants/books/memory_books.hpp>
#include <properties/invariants/books/operation_books.hpp>
#include <properties/invariants/books/peer_books.hpp>
#include <properties/invariants/books/pool_books.hpp>
#include <properties/invariants/books/quarantine_books.hpp>
#include <properties/invariants/books/transport_books.hpp>

#include <cstdint>

namespace holdfast::invariants {

struct host_books : memory_books,
                    arena_books,
                    pool_books,
                    quarantine_books,
                    operation_books,
                    peer_books,
                    transport_books,
                    fiber_books {
  bool touched = false;

  void forget() noexcept;

  /// The pool that an arena was built for, or null.
  pool_record* pool_of(const arena_record& a) noexcept { return pool_of_region(a.region); }
  pool_record* pool_of_region(std::uint64_t region) noexcept;
  /// Bytes of pages that a span covers; false if its arena's pages are not known.
  bool extent_of(const span_record& s, std::uint64_t& in_pages, std::uint64_t& first, std::uint64_t& last) noexcept;
  /// A span that lives in any granule of [first, last) of `in_pages`, other than `except`; or none.
  std::uint64_t live_span_in(std::uint64_t in_pages, std::uint64_t first, std::uint64_t last,
                             std::uint64_t except) noexcept;
  /// Whether a device can reach the arena's pages now.
  bool registered(std::uint64_t generation) noexcept;
  /// For which operation a device wrote: by its request, or, if the library finished inside the posting call, by what
  /// this fiber handed over last. `none`: for nobody.
  std::uint64_t operation_of_write(const sim::logged_event& e) noexcept;
};

}  // namespace holdfast::invariants
