// Promises about giving back what nobody uses: nothing that is in use, not too early, not too late, and before anybody
// is refused.

#include <properties/invariants/invariant.hpp>

#include <holdfast/base/error.hpp>

#include <algorithm>

namespace holdfast::invariants {

namespace {

bool by_reclaim(const arena_record& a) noexcept {
  return a.reason == retire_reason::reclaim || a.reason == retire_reason::pressure;
}

class only_what_nobody_uses_is_reclaimed final : public invariant {
 public:
  only_what_nobody_uses_is_reclaimed()
      : invariant("PM-I12", "reclamation unmaps only arenas without spans and without transfers",
                  {kind_of(event_id::arena_retired), kind_of(event_id::unmap_submitted)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const bool retiring = e.kind == event_id::arena_retired;
    const std::uint64_t generation = e.fields[retiring ? 0 : 1];
    const arena_record* const a = b.arenas.find(generation);
    if (a == nullptr || !by_reclaim(*a)) return;
    const bool says_so = !retiring || (e.fields[2] == 0 && e.fields[3] == 0);
    promise(w, says_so && a->live.empty() && a->holds == 0, [&] {
      return named(w, e, "arena", generation) + " was reclaimed with " + std::to_string(a->live.size()) +
             " spans and " + std::to_string(a->holds) + " transfers";
    });
  }
};

class a_pooled_arena_idles_first final : public invariant {
 public:
  a_pooled_arena_idles_first()
      : invariant("PM-I13", "a pooled arena is reclaimed only if it was empty for long enough and enough stays warm",
                  {kind_of(event_id::arena_retired)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const arena_record& a = *b.arenas.find(e.fields[0]);
    const pool_record* const pool = b.pool_of(a);
    if (a.reason != retire_reason::reclaim || a.dedicated || pool == nullptr || pool->reclaim_after_ns == never) return;
    promise(w, a.empty_since.set() && e.time_ns - a.empty_since.ns >= pool->reclaim_after_ns, [&] {
      return named(w, e, "arena", e.fields[0]) + " was reclaimed " +
             (a.empty_since.set() ? std::to_string(e.time_ns - a.empty_since.ns) + " ns after it fell empty"
                                  : std::string("although it never fell empty")) +
             "; it may idle for " + std::to_string(pool->reclaim_after_ns) + " ns";
    });
    std::uint64_t left = 0;
    for (std::size_t i = 0; i < b.arenas.size(); ++i) {
      const arena_record& other = b.arenas.at(i);
      if (other.published != 0 && other.retired == 0 && !other.dedicated) left += other.charge;
    }
    promise(w, left >= pool->retain_bytes, [&] {
      return named(w, e, "arena", e.fields[0]) + " was reclaimed and leaves " + std::to_string(left) +
             " pooled bytes; " + std::to_string(pool->retain_bytes) + " are to stay";
    });
    // Newest first: what is kept warm is what was there before.
    const std::uint64_t began = b.fibers[e.fiber].reclaim_event;
    for (std::size_t i = 0; i < b.arenas.size(); ++i) {
      const arena_record& other = b.arenas.at(i);
      if (other.retired == 0 || other.retired_event <= began || other.retired_event >= a.retired_event) continue;
      if (other.reason != retire_reason::reclaim || other.dedicated) continue;
      promise(w, other.published_event > a.published_event, [&] {
        return named(w, e, "arena", e.fields[0]) + " was reclaimed after arena " + std::to_string(b.arenas.id_at(i)) +
               ", which is older, by one sweep";
      });
    }
  }
};

class no_age_no_reclaim final : public invariant {
 public:
  no_age_no_reclaim()
      : invariant("PM-I14",
                  "without a time to idle no pooled arena is reclaimed but under pressure, which is when the budget "
                  "refuses",
                  {kind_of(event_id::arena_retired), kind_of(event_id::reclaim_ended)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::reclaim_ended) {
      const pool_record& pool = b.pools[e.fields[0]];
      if (pool.opened && pool.reclaim_after_ns == never && e.fields[1] != reclaim_mode::pressure)
        promise(w, true, [] { return ""; });
      if (e.fields[1] != reclaim_mode::pressure) return;
      std::uint64_t refusals = 0;
      for (std::size_t i = 0; i < b.ledgers.size(); ++i) refusals += b.ledgers.at(i).refusals;
      promise(w, pool.pressure_sweeps <= refusals, [&] {
        return named(w, e, "pool", e.fields[0]) + " swept under pressure " + std::to_string(pool.pressure_sweeps) +
               " times; the budget refused " + std::to_string(refusals) + " times";
      });
      return;
    }
    const arena_record& a = *b.arenas.find(e.fields[0]);
    const pool_record* const pool = b.pool_of(a);
    if (a.reason != retire_reason::reclaim || a.dedicated || pool == nullptr) return;
    promise(w, pool->reclaim_after_ns != never, [&] {
      return named(w, e, "arena", e.fields[0]) + " is pooled and was reclaimed, but arenas may idle for ever";
    });
  }
};

class an_empty_dedicated_arena_goes_at_once final : public invariant {
 public:
  an_empty_dedicated_arena_goes_at_once()
      : invariant(
            "PM-I15",
            "a dedicated arena serves one request, and the first sweep that begins after it became empty issues "
            "its unmap",
            {kind_of(event_id::reclaim_ended), kind_of(event_id::unmap_submitted), kind_of(event_id::span_granted)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::span_granted) {
      const arena_record& a = *b.arenas.find(e.fields[1]);
      if (a.published != 0 && a.dedicated)
        promise(w, a.spans_granted == 1, [&] {
          return named(w, e, "span", e.fields[0]) + " was granted from arena " + std::to_string(e.fields[1]) +
                 ", which is somebody's own";
        });
      return;
    }
    if (e.kind == event_id::unmap_submitted) {
      const arena_record* const a = b.arenas.find(e.fields[1]);
      if (a == nullptr || !by_reclaim(*a) || !a->dedicated || a->unmaps != 1) return;
      const std::int64_t late = elapsed_ns(w, e, a->retired_at);
      promise(w, late <= 0, [&] {
        return "an unmap of " + named(w, e, "arena", e.fields[1]) + " was submitted " + std::to_string(late) +
               " ns after its sweep";
      });
      return;
    }
    const std::uint64_t began = b.fibers[e.fiber].reclaim_event;
    if (began == 0 || b.fibers[e.fiber].reclaims != e.fields[0]) return;
    for (std::size_t i = 0; i < b.arenas.size(); ++i) {
      const arena_record& a = b.arenas.at(i);
      if (!a.dedicated || a.published == 0 || a.published_event > began || !a.live.empty() || a.holds != 0) continue;
      if (a.released_event > began || a.quiet_event > began) continue;  // fell empty too late for this sweep
      if (a.retired != 0 && a.retired_event < began) continue;
      promise(w, a.retired != 0, [&] {
        return named(w, e, "arena", b.arenas.id_at(i)) + " is dedicated and empty, and a sweep passed it by";
      });
    }
  }
  void judge_at_rest(world& w, std::uint16_t host, host_books& b) override {
    for (std::size_t i = 0; i < b.arenas.size(); ++i) {
      const arena_record& a = b.arenas.at(i);
      if (!by_reclaim(a)) continue;
      promise(w, a.unmaps != 0 || a.forced, [&] {
        return "arena " + std::to_string(b.arenas.id_at(i)) + " of host " + std::string(host_name(w, host)) +
               " was reclaimed and no unmap was ever submitted";
      });
    }
  }
};

class idle_arenas_do_not_stay final : public invariant {
 public:
  idle_arenas_do_not_stay()
      : invariant(
            "PM-I38",
            "a pooled arena that fell empty, stayed so and is not needed for the warm floor has its unmap "
            "submitted within twice the time it may idle",
            {kind_of(event_id::arena_retired), kind_of(event_id::unmap_submitted), kind_of(event_id::reclaim_ended)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::arena_retired) return in_time(w, e, b, e.fields[0], "left service");
    if (e.kind == event_id::unmap_submitted) {
      const arena_record* const a = b.arenas.find(e.fields[1]);
      // Emptied after it was retired: somebody kept a buffer past the shutdown.
      if (a == nullptr || a->unmaps != 1 || !a->retired_at.set() || a->empty_since.ns > a->retired_at.ns) return;
      return in_time(w, e, b, e.fields[1], "had its unmap submitted");
    }
    for (std::size_t i = 0; i < b.arenas.size(); ++i)
      if (b.arenas.at(i).retired == 0) in_time(w, e, b, b.arenas.id_at(i), "was passed by a sweep");
  }

 private:
  void in_time(world& w, const logged_event& e, host_books& b, std::uint64_t generation, std::string_view what) {
    const arena_record& a = *b.arenas.find(generation);
    const pool_record* const pool = b.pool_of(a);
    if (pool == nullptr || pool->reclaim_after_ns == never || a.dedicated || a.published == 0) return;
    if (!a.empty_since.set() || !a.above_floor_since.set()) return;
    const std::int64_t after = pool->reclaim_after_ns;
    const std::int64_t bound = after / 2 < shortest_period_ns ? after + 2 * shortest_period_ns
                               : after > never / 2            ? never
                                                              : 2 * after;
    const std::int64_t idle = std::min(elapsed_ns(w, e, a.empty_since), elapsed_ns(w, e, a.above_floor_since));
    promise(w, idle <= bound, [&] {
      return named(w, e, "arena", generation) + " " + std::string(what) + " " + std::to_string(idle) +
             " ns (stalled time not counted) after it was empty and not needed; allowed are " + std::to_string(bound);
    });
  }
  // The floor of the reclaim task's period.
  static constexpr std::int64_t shortest_period_ns = 10'000'000;
};

class pressure_before_refusal final : public invariant {
 public:
  pressure_before_refusal()
      : invariant("PM-I43", "the budget refuses an allocation only after one sweep under pressure for it",
                  {kind_of(event_id::alloc_refused)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.fields[3] != static_cast<std::uint64_t>(error_code::budget_exceeded)) return;
    const pool_record& pool = b.pools[e.fields[0]];
    if (!pool.opened || !pool.pressure || above_every_ceiling(b, e.fields[2])) return;
    const relief_record* const relief = b.reliefs.find(relief_id(e.fields[0], e.fields[1]));
    promise(w, e.fields[1] != 0 && relief != nullptr && relief->relieved == 1 && relief->refused == 1, [&] {
      return "the budget of " + named(w, e, "pool", e.fields[0]) + " refused " + std::to_string(e.fields[2]) +
             " bytes without a sweep of that call";
    });
    // A pool that is closed has nothing to sweep.
    const bool closed = pool.step != none && pool.step >= shutdown_step::close;
    promise(w, closed || pool.reliefs <= pool.pressure_sweeps, [&] {
      return named(w, e, "pool", e.fields[0]) + " relieved " + std::to_string(pool.reliefs) + " allocations with " +
             std::to_string(pool.pressure_sweeps) + " sweeps";
    });
  }

 private:
  // Nothing that is given back makes room for more than there is room at all.
  static bool above_every_ceiling(host_books& b, std::uint64_t bytes) {
    for (std::size_t i = 0; i < b.ledgers.size(); ++i)
      if (b.ledgers.at(i).ceiling >= bytes) return false;
    return b.ledgers.size() != 0;
  }
};

}  // namespace

void add_reclaim(invariant_list& list) {
  list.push_back(std::make_unique<only_what_nobody_uses_is_reclaimed>());
  list.push_back(std::make_unique<no_age_no_reclaim>());
  list.push_back(std::make_unique<a_pooled_arena_idles_first>());
  list.push_back(std::make_unique<an_empty_dedicated_arena_goes_at_once>());
  list.push_back(std::make_unique<idle_arenas_do_not_stay>());
  list.push_back(std::make_unique<pressure_before_refusal>());
}

}  // namespace holdfast::invariants
