#include <properties/invariants/looks.hpp>

#include <properties/invariants/invariant.hpp>

#include <string>
#include <vector>

namespace holdfast::invariants {

namespace {

class the_gauge_is_the_counter final : public invariant {
 public:
  the_gauge_is_the_counter()
      : invariant("PM-I36", "the gauge of registered bytes equals the counter whenever it is read", {}) {}
  void judge(world&, const logged_event&, host_books&) override {}
  void look(world& w, std::uint16_t host, host_books& b, std::uint64_t registered_bytes) {
    if (b.ledgers.size() == 0) return;
    ++evaluated;
    std::uint64_t charged = 0;
    for (std::size_t i = 0; i < b.ledgers.size(); ++i) charged += b.ledgers.at(i).charged;
    promise(w, registered_bytes == charged, [&] {
      return "host " + std::string(host_name(w, host)) + " shows " + std::to_string(registered_bytes) +
             " registered bytes; its ledger counts " + std::to_string(charged);
    });
  }
};

class a_snapshot_adds_up final : public invariant {
 public:
  a_snapshot_adds_up() : invariant("PM-I51", "a snapshot's sums equal a recount of its own lists", {}) {}
  void judge(world&, const logged_event&, host_books&) override {}
  void look(world& w, std::uint16_t host, const pinned::memory_snapshot& taken) {
    ++evaluated;
    std::uint64_t live = 0, holds = 0;
    for (const pinned::arena_snapshot& one : taken.arenas) {
      live += one.live;
      holds += one.holds;
    }
    wrong(w, host, "arenas", taken.pool.arena_count, taken.arenas.size());
    wrong(w, host, "live spans", taken.pool.live_spans, live);
    wrong(w, host, "transfers", taken.pool.in_flight, holds);
    promise(w, taken.budget.reserved_open_bytes <= taken.budget.registered_bytes, [&] {
      return "a snapshot of host " + std::string(host_name(w, host)) + " has more bytes reserved than charged";
    });
    for (const std::vector<pinned::arena_snapshot>* const list : {&taken.arenas, &taken.retiring})
      for (const pinned::arena_snapshot& one : *list)
        promise(w,
                one.largest_free_bytes <= one.free_bytes && one.free_bytes + one.quarantined_bytes <= one.size_bytes &&
                    one.holds <= one.live,
                [&] {
                  return "arena " + std::to_string(one.generation) + " in a snapshot of host " +
                         std::string(host_name(w, host)) + " has more than there is of it";
                });
  }

 private:
  void wrong(world& w, std::uint16_t host, std::string_view what, std::uint64_t sum, std::uint64_t recount) {
    promise(w, sum == recount, [&] {
      return "a snapshot of host " + std::string(host_name(w, host)) + " counts " + std::to_string(sum) + " " +
             std::string(what) + " and lists " + std::to_string(recount);
    });
  }
};

class nobody_waits_with_a_lock final : public invariant {
 public:
  nobody_waits_with_a_lock()
      : invariant("PM-I37", "no lock is held where a task suspends or is resumed, or where an arena's pages go",
                  {kind_of(hardware_event::cancel_fired), kind_of(hardware_event::pages_returned),
                   kind_of(hardware_event::pages_tombstoned), kind_of(event_id::get_abandoned),
                   kind_of(event_id::pressure_relieved), kind_of(event_id::alloc_refused),
                   kind_of(event_id::buffer_returned)}) {}
  void judge(world& w, const logged_event& e, host_books&) override {
    const unsigned held = w.locks_held_by_running_fiber();
    promise(w, held == 0, [&] {
      const bool pages = e.kind == hardware_event::pages_returned || e.kind == hardware_event::pages_tombstoned;
      return (pages ? named(w, e, "pages", e.fields[0]) + " went back with "
                    : "a task of host " + std::string(host_name(w, e.host)) + " stands still with ") +
             std::to_string(held) + " locks";
    });
  }
};

the_gauge_is_the_counter* the_gauge = nullptr;
a_snapshot_adds_up* the_snapshot = nullptr;

}  // namespace

void add_looks(invariant_list& list) {
  auto gauge = std::make_unique<the_gauge_is_the_counter>();
  the_gauge = gauge.get();
  list.push_back(std::move(gauge));
  auto snapshot = std::make_unique<a_snapshot_adds_up>();
  the_snapshot = snapshot.get();
  list.push_back(std::move(snapshot));
  list.push_back(std::make_unique<nobody_waits_with_a_lock>());
}

void look_at_gauge(sim::world& w, std::uint16_t host, std::uint64_t registered_bytes) {
  ghost& books = the_ghost();
  if (the_gauge != nullptr && host < books.host_count() && books.touched(host))
    the_gauge->look(w, host, books.of(host), registered_bytes);
}

void told_arena_sizes(sim::world&, std::uint16_t host, std::uint64_t initial_bytes, std::uint64_t max_bytes,
                      std::uint64_t page_bytes) {
  ghost& books = the_ghost();
  if (host >= books.host_count() || !books.touched(host)) return;
  host_books& b = books.of(host);
  b.arena_initial_bytes = initial_bytes;
  b.arena_max_bytes = max_bytes;
  b.page_bytes = page_bytes;
}

void told_transport(sim::world&, std::uint16_t host, std::uint64_t progress_batch, std::int64_t connect_timeout_ns,
                    std::uint64_t connections_max) {
  ghost& books = the_ghost();
  if (host >= books.host_count() || !books.touched(host)) return;
  books.of(host).progress_batch = progress_batch;
  books.of(host).connect_timeout_ns = connect_timeout_ns;
  books.of(host).connections_max = connections_max;
}

void told_shutdown(sim::world& w, std::uint16_t host, std::int64_t deadline_ns) {
  ghost& books = the_ghost();
  if (host >= books.host_count() || !books.touched(host)) return;
  books.of(host).teardown_due_ns = deadline_ns;
  books.of(host).teardown_stalled_ns = stalled_ns(w, host);
}

void told_call(sim::world&, std::uint16_t host, bool waits) {
  ghost& books = the_ghost();
  if (host >= books.host_count() || !books.touched(host)) return;
  std::uint32_t& open = books.of(host).calls_open;
  if (waits)
    ++open;
  else if (open != 0)
    --open;
}

void look_at_snapshot(sim::world& w, std::uint16_t host, const pinned::memory_snapshot& taken) {
  if (the_snapshot != nullptr) the_snapshot->look(w, host, taken);
}

}  // namespace holdfast::invariants
