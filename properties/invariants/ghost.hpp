// What the event stream says the world is like: the state that invariants judge.
//
// Why this exists: a check may not look into core, or it would believe what core believes. So the books are kept a
// second time, from events and simulated hardware only, once for all checks. Nothing here judges; records are never
// removed within a run, they count what happened to them.
//
// How the two vocabularies meet: core names blocks, regions and operations by its own numbers, the hardware by its
// own. They are joined where one call causes both events: pages are owned and then named on one fiber, a registration
// lies over a block, an operation is handed over and then posted on one fiber.
//
// Ownership   One ghost for the process, in registry.cpp.
// Units       Bytes, granules of 4096 bytes where a name says so, virtual nanoseconds.
// Threading   One OS thread.
// Failure     An event about something that was never introduced changes nothing.
#pragma once

#include <properties/invariants/id_table.hpp>
#include <sim/kernel/event.hpp>
#include <sim/kernel/world.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

namespace holdfast::invariants {

inline constexpr std::uint64_t granule_bytes = 4096;
inline constexpr std::size_t quarantine_kinds = 6;
inline constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
/// As a length of time: for ever.
inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// Order of the enumerations in telemetry/events.def.
namespace verdict {
enum : std::uint64_t { confirmed, refused, unknown };
}
namespace retire_reason {
enum : std::uint64_t { reclaim, shutdown, cancelled, closed, failed, pressure };
}
namespace reclaim_mode {
enum : std::uint64_t { timed, asked, pressure };
}
namespace quarantine_kind {
enum : std::uint64_t { arena, region, span, allocation, prefix, chunk };
}
namespace shutdown_step {
enum : std::uint64_t { gate, drain, close, sweep, report };
}
namespace operation_kind {
enum : std::uint64_t { get, hello, close };
}
namespace operation_exit {
enum : std::uint64_t { inline_done, callback, error, swept, refused, withdrawn };
}
namespace transport_state {
enum : std::uint64_t { probing, absent, running, closing, destroying, swept, gone, hung };
}
namespace connection_state {
enum : std::uint64_t { connecting, greeting, ready, draining, lost, closing, closed, failed, unseen };
}
namespace endpoint_state {
enum : std::uint64_t { open, failed, flushing, forced, destroyed, parked, unseen };
}
namespace endpoint_lane {
enum : std::uint64_t { control, data };
}
namespace wake_cause {
enum : std::uint64_t { none, woken, descriptor, both, deadline };
}
/// Bits of the flags of `transport_capabilities`.
namespace capability {
enum : std::uint64_t {
  untested_version = 1 << 0,
  get_works = 1 << 1,
  shares_memory = 1 << 3,
  registrations_distinct = 1 << 5,
  inline_exit_seen = 1 << 6,
  callback_exit_seen = 1 << 7,
};
}
namespace key_state {
enum : std::uint64_t { unpacked, condemned, destroyed, unseen };
}
namespace evidence_kind {
enum : std::uint64_t { none, answer, completion, witness, fence, termination };
}
namespace progress_state {
enum : std::uint64_t { working, arming, sleeping, stopped, unseen };
}

/// A moment, and how long the host had been kept from running by then: times between two moments are judged without
/// what was stalled between them.
struct moment {
  std::int64_t ns = never;
  std::int64_t stalled_ns = 0;
  bool set() const noexcept { return ns != never; }
};

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
  bool freed = false, leaked = false;
};

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

struct arena_record {
  std::uint64_t region = none;
  std::uint64_t bytes = 0, charge = 0;
  bool dedicated = false, adopted = false;
  std::uint32_t published = 0, retired = 0, unconfirmed = 0, settled = 0;
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

struct operation_record {
  std::uint64_t worker_id = 0, incarnation = 0, bytes = 0, kind = none;
  std::uint64_t connection = none;
  std::uint64_t request = none;
  std::uint64_t span = none;
  std::uint64_t landed = 0;  // bytes that a device wrote for it
  std::uint64_t exit = none;
  std::uint32_t accepted = 0, submitted = 0, posted = 0, orphaned = 0, ended = 0, told = 0, abandoned = 0, returned = 0;
  std::int64_t accepted_ns = 0, accepted_stalled_ns = 0;
  std::uint32_t accepted_fiber = 0xffffffff;
  std::uint64_t calls_when_left = none;  // calls of the library's progress when its caller had gone on
  bool succeeded = false;
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

struct ledger_record {
  std::uint64_t ceiling = none;  // none: not known
  std::uint64_t charged = 0;     // as core says
  std::uint64_t before = 0;      // and before the last event
  std::uint64_t open = 0, committed = 0;
  std::uint64_t refusals = 0;
  bool counted_down_below = false;  // more came back than was out
  bool corrupt = false;
};

struct pool_record {
  // As it was opened. Times: `never`.
  bool opened = false, pressure = false;
  std::int64_t reclaim_after_ns = never, unmap_timeout_ns = never;
  std::uint64_t retain_bytes = 0, retries = 0;
  std::uint32_t building = 0;  // arenas of both kinds
  std::uint32_t pressure_sweeps = 0, reliefs = 0;
  std::uint64_t sweep_event = 0;  // of its shutdown
  std::uint32_t growing = 0;      // pooled arenas that are being built
  std::uint64_t claimed_event = 0;
  std::uint64_t pooled = 0, pooled_at_claim = 0;  // pooled arenas in service: now, and when a grower searched last
  bool overlapped = false;                        // the growth that began last began beside another
  // The gates that its shutdown closed, in order: of operations, then of transfers.
  struct closed_gate {
    std::uint64_t gate = none;
    bool drained = false;
  };
  closed_gate operations, transfers;
  std::uint64_t step = none;
  std::uint32_t shutdowns = 0, ended = 0;
  std::int64_t started_ns = 0, started_stalled_ns = 0, deadline_ns = 0;
  std::uint32_t swept = 0;  // arenas taken by the shutdown
};

struct connection_record {
  std::uint64_t state = connection_state::unseen;
  std::uint64_t before = connection_state::unseen;
  std::uint64_t worker_id = 0, incarnation = 0;
  std::uint32_t greeted = 0, lost = 0, reported = 0;
  moment began;          // as an attempt
  bool probing = false;  // greeted before the capabilities were told
};

struct endpoint_record {
  std::uint64_t state = endpoint_state::unseen;
  std::uint64_t before = endpoint_state::unseen;
  std::uint64_t connection = none;
  std::uint64_t lane = endpoint_lane::control;
  std::uint32_t failed = 0, closed = 0;
  std::uint64_t life = none;  // incarnation that its first connection greeted, when it was opened
};

/// A worker of the library, as the library names it. One is known from the first call about it.
struct worker_record {
  std::uint32_t fiber = 0xffffffff;     // that called first
  std::uint32_t stranger = 0xffffffff;  // another that called since; none if there was none
  bool destroyed = false;
};

struct context_record {
  std::uint32_t progress_fiber = 0xffffffff,
                registration_fiber = 0xffffffff;  // that first had a worker, or memory, of it
  bool two_progress = false, two_registration = false;
};

/// An endpoint of the library, as the library names it.
struct lane_record {
  bool shared = false;
  std::uint32_t closes = 0;
};

struct key_record {
  std::uint64_t state = key_state::unseen;
  std::uint64_t connection = none;
  std::uint32_t destroyed = 0;
  std::uint32_t in_use = 0;             // operations that were posted with it and have not ended
  std::uint32_t in_use_at_the_end = 0;  // when it was destroyed
  bool after_end = false;               // used after its destruction
};

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

/// What one fiber did last, to join the two vocabularies.
struct fiber_record {
  std::uint64_t pages = none;
  std::uint64_t operation = none;
  std::uint64_t in_try_alloc = none;  // pool
  std::uint64_t try_event = 0, try_bytes = 0;
  std::uint64_t growing = none;   // pool, until the map is asked for
  std::uint64_t mapped = none;    // region, until its charge is committed
  std::uint64_t reclaims = none;  // pool that it sweeps
  std::uint64_t reclaim_event = 0, reclaim_mode = none;
  std::uint64_t in_gate_step = none;  // pool
  std::uint64_t held_span = none;     // waits for the number of its operation
  std::uint64_t last_lane = none;     // endpoint of the library for which it asked a GET last
};

/// The sweep under pressure of one allocation.
struct relief_record {
  std::uint32_t relieved = 0, refused = 0;
};

/// A step of a workload.
struct step_record {
  std::uint32_t began = 0, ended = 0;
};

struct host_books {
  id_table<pages_record> pages;
  id_table<registration_record> registrations;
  id_table<block_record> blocks;
  id_table<region_record> regions;
  id_table<arena_record> arenas;
  id_table<span_record> spans;
  id_table<operation_record> operations;
  id_table<request_record> requests;
  id_table<ledger_record> ledgers;
  id_table<pool_record> pools;
  id_table<relief_record> reliefs;  // by `ghost::relief_id`
  id_table<step_record> steps;
  id_table<connection_record> connections;
  id_table<endpoint_record> endpoints;
  id_table<key_record> keys;
  id_table<worker_record> workers;
  id_table<context_record> contexts;
  id_table<lane_record> lanes;
  id_table<quarantined_record> quarantined[quarantine_kinds];  // by kind
  id_table<quarantine_record> quarantines;
  id_table<std::uint64_t> operation_keys;  // operation -> key
  id_table<fiber_record> fibers;
  id_table<std::uint64_t> newest_incarnation;  // worker id -> as greeted last
  id_table<std::uint64_t> replaced_incarnation;

  std::vector<std::uint64_t> queued;         // operations accepted and not handed over
  std::vector<std::uint64_t> open_requests;  // in the library
  std::uint64_t progress_calls = 0;          // of the library, on the progress thread
  std::uint64_t progress_batch = 0;          // as the transport was told; 0: nobody said
  std::int64_t connect_timeout_ns = 0;       // 0: nobody said
  std::uint64_t connections_max = 0;         // 0: nobody said
  std::int64_t teardown_due_ns = never, teardown_stalled_ns = 0;
  std::uint32_t gates_closed = 0;
  std::uint32_t calls_open = 0;  // of its transport, which a program waits for
  // What its pools were told about the sizes of arenas; 0: nobody said.
  std::uint64_t arena_initial_bytes = 0, arena_max_bytes = 0, page_bytes = 0;
  std::uint64_t registered_bytes = 0;  // over core's blocks, at the device, not confirmed gone
  std::uint64_t holds = 0;
  std::uint32_t registration_fiber = 0xffffffff, progress_fiber = 0xffffffff, gets_fiber = 0xffffffff;
  std::uint64_t progress = progress_state::unseen, progress_before = progress_state::unseen;
  std::uint64_t transport = none;
  std::uint32_t workers_destroyed = 0, contexts_closed = 0, witnesses = 0, hung = 0, absent = 0, sweeps = 0;
  std::uint32_t workers_open = 0;       // known and not destroyed
  std::uint32_t failures = 0;           // of the library for good
  std::uint32_t witnesses_of_this = 0;  // of the transport that began last
  moment closing_since;
  std::uint64_t capabilities = none;  // flags that were told
  bool probe_shared = false;          // a GET through shared memory ended well before they were told
  bool probe_ended_well = false;      // any GET did
  bool probe_inline = false, probe_callback = false;
  bool registered_twice = false;  // pages had two registrations at a time
  // Wakes that nothing followed: since when, how many, and whether something happened since the last.
  moment idle_since;
  std::uint32_t idle_wakes = 0;
  bool worked = true;
  std::uint64_t last_message_limit = 0;
  std::uint64_t witnessed_epoch = none;
  std::uint32_t cancelled = 0;  // somebody gave up, or was made to
  bool touched = false;

  void forget();
  /// Ending of a GET in the library for the host's only worker.
  void close_request(std::uint64_t request) noexcept;
};

class ghost {
 public:
  /// Kinds that it learns from.
  static std::vector<sim::event_kind> needs();
  void forget() noexcept;
  void see(sim::world& w, const sim::logged_event& e);

  host_books& of(std::uint16_t host) { return *hosts_[host]; }
  std::size_t host_count() const noexcept { return hosts_.size(); }
  bool touched(std::size_t host) const noexcept { return hosts_[host] && hosts_[host]->touched; }

  static std::int64_t stalled_ns(sim::world& w, std::uint16_t host) noexcept;
  static std::string_view host_name(sim::world& w, std::uint16_t host) noexcept;
  static moment now(sim::world& w, const sim::logged_event& e) noexcept;
  /// Time since `then` in which the host could have run.
  static std::int64_t elapsed_ns(sim::world& w, const sim::logged_event& e, const moment& then) noexcept;
  /// The pool that an arena was built for, or null.
  static pool_record* pool_of(host_books& b, const arena_record& a) noexcept;
  static pool_record* pool_of_region(host_books& b, std::uint64_t region) noexcept;
  /// Attempts are numbered within a pool.
  static std::uint64_t relief_id(std::uint64_t pool, std::uint64_t attempt) noexcept { return pool << 40 | attempt; }
  /// Granules of the spans that live in an arena.
  static std::uint64_t taken_granules(host_books& b, const arena_record& a) noexcept;

  /// Bytes of pages that a span covers; false if its arena's pages are not known.
  static bool extent_of(host_books& b, const span_record& s, std::uint64_t& pages, std::uint64_t& first,
                        std::uint64_t& last) noexcept;
  /// The library's workers of this host are gone, so that nothing of it can be under way.
  static bool workers_gone(const host_books& b) noexcept { return b.workers_destroyed != 0 && b.workers_open == 0; }
  /// A request in the library that writes into [first, last) of `pages`, or none.
  static std::uint64_t open_request_into(host_books& b, std::uint64_t pages, std::uint64_t first,
                                         std::uint64_t last) noexcept;
  /// For which operation a device wrote: by its request, or, if the library finished inside the posting call, by what
  /// this fiber handed over last. `none`: for nobody.
  static std::uint64_t operation_of_write(host_books& b, const sim::logged_event& e) noexcept;
  /// A span that lives in any granule of [first, last) of `pages`, other than `except`; or none.
  static std::uint64_t live_span_in(host_books& b, std::uint64_t pages, std::uint64_t first, std::uint64_t last,
                                    std::uint64_t except) noexcept;
  /// Whether a device can reach the arena's pages now.
  static bool registered(host_books& b, std::uint64_t generation) noexcept;
  /// Granules of the longest free range of an arena, by the spans that live in it.
  static std::uint64_t longest_free(host_books& b, const arena_record& a) noexcept;

 private:
  host_books& books(const sim::logged_event& e);
  std::vector<std::unique_ptr<host_books>> hosts_;
  std::vector<std::uint16_t> touched_;
};

}  // namespace holdfast::invariants
