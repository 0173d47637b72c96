// The transport of a host: its threads, the library's workers and contexts, and how it ends.
//
// Why this exists: which thread drives what, what the probe saw, and whether a witness tells the truth.
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

namespace holdfast::invariants {

/// A worker of the library, as the library names it. One is known from the first call about it.
struct worker_record {
  std::uint32_t fiber = no_fiber;     // that called first
  std::uint32_t stranger = no_fiber;  // another that called since; none if there was none
  bool destroyed = false;
};

/// A context of the library, as the library names it.
struct context_record {
  std::uint32_t progress_fiber = no_fiber,
                registration_fiber = no_fiber;  // that first had a worker, or memory, of it
  bool two_progress = false, two_registration = false;
};

struct transport_books {
  id_table<worker_record> workers;
  id_table<context_record> contexts;
  std::uint32_t registration_fiber = no_fiber, progress_fiber = no_fiber;
  std::uint64_t progress = progress_state::unseen;
  bool unheard = false;              // the library woke the progress thread, and was not driven since
  std::uint64_t progress_calls = 0;  // of the library, on the progress thread
  std::uint64_t progress_batch = 0;  // as the transport was told; 0: nobody said
  std::uint64_t transport = none;
  std::uint32_t calls_open = 0;  // of its transport, which a program waits for
  std::uint32_t workers_destroyed = 0, contexts_closed = 0, witnesses = 0, hung = 0, absent = 0;
  std::uint32_t workers_open = 0;       // known and not destroyed
  std::uint32_t failures = 0;           // of the library for good
  std::uint32_t witnesses_of_this = 0;  // of the transport that began last
  std::uint64_t witnessed_epoch = none;
  std::uint64_t capabilities = none;  // flags that were told
  bool probe_shared = false;          // a GET through shared memory ended well before they were told
  bool probe_ended_well = false;      // any GET did
  bool probe_inline = false, probe_callback = false;
  // Wakes that nothing followed: since when, how many, and whether something happened since the last.
  moment idle_since;
  std::uint32_t idle_wakes = 0;
  bool worked = true;

  void forget_transport() noexcept;
  /// Another transport begins: it brings threads, workers and a probe of its own.
  void begin_transport() noexcept;
  /// The library's workers of this host are gone, so that nothing of it can be under way.
  bool workers_gone() const noexcept { return workers_destroyed != 0 && workers_open == 0; }
};

}  // namespace holdfast::invariants
