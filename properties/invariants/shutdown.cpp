// Promises about the shutdown of a pool: it ends in time, waits for what it must and counts the rest.

#include <properties/invariants/invariant.hpp>

namespace holdfast::invariants {

namespace {

class no_force_without_a_witness final : public invariant {
 public:
  no_force_without_a_witness()
      : invariant("PM-I20", "nothing is released by force before the transport's witness exists",
                  {kind_of(event_id::forced_release), kind_of(event_id::arena_settled)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::arena_settled && e.fields[3] == 0) return;
    const bool of_this_transport = e.kind == event_id::arena_settled || e.fields[1] == b.witnessed_epoch;
    promise(w, b.witnesses != 0 && of_this_transport, [&] {
      return named(w, e, e.kind == event_id::forced_release ? "pool" : "arena", e.fields[0]) +
             " was released by force without a witness of its transport";
    });
  }
};

class shutdown_ends_by_its_deadline final : public invariant {
 public:
  shutdown_ends_by_its_deadline()
      : invariant("PM-I21", "shutdown returns by its deadline plus stalled time, whatever the backend does",
                  {kind_of(event_id::shutdown_ended)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const pool_record& pool = *b.pools.find(e.fields[0]);
    if (pool.deadline_ns == never) return;
    const std::int64_t stalled = stalled_ns(w, e.host) - pool.started_stalled_ns;
    const std::int64_t due = std::max(pool.deadline_ns, pool.started_ns);
    promise(w, e.time_ns <= due + stalled, [&] {
      return "shutdown of " + named(w, e, "pool", e.fields[0]) + " returned " + std::to_string(e.time_ns - due) +
             " ns after its deadline; the host stalled for " + std::to_string(stalled) + " ns";
    });
  }
  void judge_at_rest(world& w, std::uint16_t host, host_books& b) override {
    for (std::size_t i = 0; i < b.pools.size(); ++i) {
      const pool_record& pool = b.pools.at(i);
      if (pool.shutdowns == 0) continue;
      promise(w, pool.ended != 0, [&] {
        return "shutdown of pool " + std::to_string(b.pools.id_at(i)) + " of host " + std::string(host_name(w, host)) +
               " never returned";
      });
    }
  }
  void judge_when_stuck(world& w, std::uint16_t host, host_books& b) override {
    judge_at_rest(w, host, b);
    // A gate without a pool: what waits there is its drain.
    if (b.pools.size() != 0 || b.gates_closed == 0) return;
    for (std::size_t i = 0; i < b.steps.size(); ++i) {
      const step_record& step = b.steps.at(i);
      promise(w, step.began == step.ended, [&] {
        return "step " + std::to_string(b.steps.id_at(i)) + " of host " + std::string(host_name(w, host)) +
               " waits at a closed gate for ever";
      });
    }
  }
};

class no_unmap_under_a_transfer final : public invariant {
 public:
  no_unmap_under_a_transfer()
      : invariant("PM-I22", "no unmap is submitted over memory that a GET of ours is still writing",
                  {kind_of(event_id::unmap_submitted)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const region_record& region = *b.regions.find(e.fields[0]);
    const block_record* const block = b.blocks.find(region.block);
    if (block == nullptr) return;
    const std::uint64_t request = b.open_request_into(block->pages, 0, none);
    const arena_record* const a = b.arenas.find(e.fields[1]);
    const bool holds =
        a != nullptr && a->holds != 0 && a->reason == retire_reason::shutdown && b.workers_destroyed == 0;
    promise(w, request == none && !holds, [&] {
      return "an unmap of " + named(w, e, "region", e.fields[0]) + " was submitted while " +
             (request != none ? "request " + std::to_string(request) + " writes into it" : "a transfer holds it");
    });
  }
};

class shutdown_does_not_wait_for_buffers final : public invariant {
 public:
  shutdown_does_not_wait_for_buffers()
      : invariant("PM-I23", "shutdown does not wait for buffers that callers keep",
                  {kind_of(event_id::unmap_submitted)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const arena_record* const a = b.arenas.find(e.fields[1]);
    if (a == nullptr || a->reason != retire_reason::shutdown || a->live.empty() || a->unmaps != 1 || a->holds != 0)
      return;
    const std::int64_t ready = std::max(a->retired_at.ns, a->quiet_since_ns);
    std::int64_t stalled = 0;
    for (std::size_t i = 0; i < b.pools.size(); ++i)
      if (b.pools.at(i).shutdowns != 0) stalled = stalled_ns(w, e.host) - b.pools.at(i).started_stalled_ns;
    promise(w, e.time_ns <= ready + stalled, [&] {
      return named(w, e, "arena", e.fields[1]) + " had no transfer for " + std::to_string(e.time_ns - ready) +
             " ns before its unmap was submitted, with " + std::to_string(a->live.size()) + " buffers out";
    });
  }
  void judge_when_stuck(world& w, std::uint16_t host, host_books& b) override {
    for (std::size_t i = 0; i < b.arenas.size(); ++i) {
      const arena_record& a = b.arenas.at(i);
      if (a.retired == 0 || a.reason != retire_reason::shutdown || a.live.empty() || a.holds != 0) continue;
      promise(w, a.unmaps != 0, [&] {
        return "arena " + std::to_string(b.arenas.id_at(i)) + " of host " + std::string(host_name(w, host)) +
               " has no transfer, and its unmap waits for " + std::to_string(a.live.size()) + " buffers";
      });
    }
  }
};

class nothing_begins_after_the_gate final : public invariant {
 public:
  nothing_begins_after_the_gate()
      : invariant("PM-I24",
                  "after the gate closed and drained no GET begins; after the pool closed no arena is published",
                  {kind_of(event_id::buffer_lent), kind_of(event_id::arena_published),
                   kind_of(event_id::growth_started), kind_of(event_id::shutdown_step)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    for (std::size_t i = 0; i < b.pools.size(); ++i) {
      const pool_record& pool = b.pools.at(i);
      if (pool.shutdowns == 0) continue;
      if (e.kind == event_id::shutdown_step) {
        promise(w, true, [] { return ""; });
        return;
      }
      const bool shut = pool.step != none && pool.step >= shutdown_step::close;
      const std::uint64_t closed = b.pools.id_at(i);
      if (e.kind == event_id::arena_published)
        promise(w, !shut, [&] {
          return named(w, e, "arena", e.fields[0]) + " was published after pool " + std::to_string(closed) +
                 " was closed";
        });
      else if (e.kind == event_id::buffer_lent)
        promise(w, !pool.transfers.drained, [&] {
          return "a transfer into " + named(w, e, "span", e.fields[0]) + " began after pool " + std::to_string(closed) +
                 " had seen its last";
        });
      else
        promise(w, closed != e.fields[0] || !pool.operations.drained,
                [&] { return named(w, e, "pool", e.fields[0]) + " grows after its last operation ended"; });
    }
  }
};

class every_swept_arena_is_counted final : public invariant {
 public:
  every_swept_arena_is_counted()
      : invariant("PM-I39", "every arena that a shutdown swept has its unmap submitted or is counted as not submitted",
                  {kind_of(event_id::shutdown_ended)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const pool_record& pool = *b.pools.find(e.fields[0]);
    std::uint64_t swept = 0, unsubmitted = 0, never_submitted = 0;
    for (std::size_t i = 0; i < b.arenas.size(); ++i) {
      const arena_record& a = b.arenas.at(i);
      if (a.retired == 0) continue;
      if (a.unmaps == 0) ++never_submitted;
      // What left service before it, and has not settled, is on the list that the sweep takes.
      const bool before = a.retired_event < pool.sweep_event && a.settled == 0;
      if (a.reason != retire_reason::shutdown && !before) continue;
      ++swept;
      if (a.unmaps == 0) ++unsubmitted;
    }
    const std::uint64_t confirmed = e.fields[1], unconfirmed = e.fields[2], not_submitted = e.fields[3];
    promise(w,
            unsubmitted <= not_submitted && not_submitted <= never_submitted &&
                swept <= confirmed + unconfirmed + not_submitted,
            [&] {
              return "shutdown of " + named(w, e, "pool", e.fields[0]) + " swept " + std::to_string(swept) +
                     " arenas, " + std::to_string(unsubmitted) + " without an unmap, and reports " +
                     std::to_string(confirmed) + " confirmed, " + std::to_string(unconfirmed) + " unconfirmed, " +
                     std::to_string(not_submitted) + " not submitted";
            });
  }
};

class what_a_shutdown_leaves_is_counted final : public invariant {
 public:
  what_a_shutdown_leaves_is_counted()
      : invariant("W-7", "shutdown ends by its deadline plus stalled time, and what it could not confirm is counted",
                  {kind_of(event_id::shutdown_ended)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const pool_record& pool = *b.pools.find(e.fields[0]);
    std::uint64_t left = 0, gone = 0;
    for (std::size_t i = 0; i < b.arenas.size(); ++i) {
      const arena_record& a = b.arenas.at(i);
      if (a.retired == 0) continue;
      const region_record* const region = b.regions.find(a.region);
      const bool is_gone = a.settled != 0 || (region != nullptr && region->confirmed);
      if (is_gone)
        ++gone;
      else if (a.reason == retire_reason::shutdown || a.retired_event < pool.sweep_event)
        ++left;
    }
    const std::uint64_t confirmed = e.fields[1], counted = e.fields[2] + e.fields[3];
    promise(w, left <= counted && confirmed <= gone, [&] {
      return "shutdown of " + named(w, e, "pool", e.fields[0]) + " leaves " + std::to_string(left) +
             " registrations and counts " + std::to_string(counted) + "; " + std::to_string(gone) + " are gone and " +
             std::to_string(confirmed) + " reported so";
    });
  }
  void judge_when_stuck(world& w, std::uint16_t host, host_books& b) override {
    if (b.teardown_due_ns == never) return;
    const std::int64_t due_ns = b.teardown_due_ns + stalled_ns(w, host) - b.teardown_stalled_ns;
    promise(w, w.now() <= due_ns, [&] {
      return "a shutdown of host " + std::string(host_name(w, host)) + " has not returned " +
             std::to_string(w.now() - due_ns) + " ns after its deadline";
    });
  }
};

}  // namespace

void add_shutdown(invariant_list& list) {
  list.push_back(std::make_unique<no_force_without_a_witness>());
  list.push_back(std::make_unique<shutdown_does_not_wait_for_buffers>());
  list.push_back(std::make_unique<shutdown_ends_by_its_deadline>());
  list.push_back(std::make_unique<no_unmap_under_a_transfer>());
  list.push_back(std::make_unique<nothing_begins_after_the_gate>());
  list.push_back(std::make_unique<every_swept_arena_is_counted>());
  list.push_back(std::make_unique<what_a_shutdown_leaves_is_counted>());
}

}  // namespace holdfast::invariants
