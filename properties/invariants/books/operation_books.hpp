// Operations as core names them, requests as the library does.
//
// Why this exists: an operation takes one exit, and the library decides when its bytes are there.
//
// Ownership   The books own their records, of one host and one run.
// Units       Bytes, virtual nanoseconds.
// Threading   One OS thread.
// Failure     None: what was never introduced changes nothing.
#pragma once

#include <properties/invariants/books/vocabulary.hpp>
#include <properties/invariants/id_table.hpp>

#include <cstdint>
#include <vector>

namespace holdfast::invariants {

struct operation_record {
  std::uint64_t worker_id = 0, incarnation = 0, bytes = 0, kind = none;
  std::uint64_t connection = none;
  std::uint64_t request = none;
  std::uint64_t span = none;
  std::uint64_t landed = 0;  // bytes that a device wrote for it
  std::uint32_t accepted = 0, submitted = 0, orphaned = 0, ended = 0, told = 0, abandoned = 0, returned = 0;
  std::int64_t accepted_ns = 0, accepted_stalled_ns = 0;
  std::uint32_t accepted_fiber = no_fiber;
  std::uint64_t overtook = 0;            // those that waited before it when it was submitted
  std::uint64_t calls_when_left = none;  // calls of the library's progress when its caller had gone on
};

/// A GET in the library.
struct request_record {
  std::uint64_t operation = none;
  std::uint64_t pages = none;
  std::uint64_t offset = 0, bytes = 0;
  bool open = false;
  bool shared = false;  // posted on an endpoint that goes through the machine's memory
  bool swept = false;   // its worker was destroyed while it was open
  std::uint32_t callbacks = 0;
  std::uint32_t fiber = 0;
};

struct operation_books {
  id_table<operation_record> operations;
  id_table<request_record> requests;
  std::vector<std::uint64_t> queued;         // operations accepted and not handed over
  std::vector<std::uint64_t> open_requests;  // in the library
  std::uint32_t cancelled = 0;               // somebody gave up, or was made to

  void forget_operations() noexcept;
  /// It was handed over, or ended before.
  void leave_queue(std::uint64_t operation) noexcept;
  /// Ending of a GET in the library for the host's only worker.
  void close_request(std::uint64_t request) noexcept;
  /// A request in the library that writes into [first, last) of `pages`, or none.
  std::uint64_t open_request_into(std::uint64_t pages, std::uint64_t first, std::uint64_t last) noexcept;
};

}  // namespace holdfast::invariants
