// Promises about arenas: growth, publication, and what is left when all is over.

#include <properties/invariants/invariant.hpp>

#include <algorithm>

namespace holdfast::invariants {

namespace {

class an_arena_is_in_one_place final : public invariant {
 public:
  an_arena_is_in_one_place()
      : invariant("PM-I10", "an arena is on exactly one of builder, vector, retiring list, settled",
                  {kind_of(event_id::arena_published), kind_of(event_id::arena_retired),
                   kind_of(event_id::arena_settled), kind_of(event_id::growth_ended)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::growth_ended) {
      // Its builder let go of it: it serves by now, or is on the retiring list.
      if (e.fields[1] == 0) return;
      const arena_record* const built = b.arenas.find(e.fields[1]);
      promise(w, built != nullptr && built->published + built->retired != 0,
              [&] { return named(w, e, "arena", e.fields[1]) + " was built, and is nowhere"; });
      return;
    }
    const arena_record& a = *b.arenas.find(e.fields[0]);
    const bool held = e.kind == event_id::arena_published ? a.published == 1 && a.retired == 0 && a.settled == 0
                      : e.kind == event_id::arena_retired ? a.retired == 1 && a.settled == 0
                                                          : a.retired == 1;
    promise(w, held, [&] {
      return named(w, e, "arena", e.fields[0]) + " was published " + std::to_string(a.published) + " times, retired " +
             std::to_string(a.retired) + " times, settled " + std::to_string(a.settled) + " times";
    });
  }
};

class one_map_for_one_demand final : public invariant {
 public:
  one_map_for_one_demand()
      : invariant("PM-I16",
                  "misses that one arena can satisfy cause one map, and a pooled arena is as large as its turn says",
                  {kind_of(event_id::growth_started)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.fields[2] != 0) return;  // a dedicated arena serves one request
    const pool_record& pool = *b.pools.find(e.fields[0]);
    promise(w, !pool.overlapped,
            [&] { return named(w, e, "pool", e.fields[0]) + " builds two pooled arenas at once"; });
    if (pool.claimed_event == 0 || w.violated()) return;
    judge_size(w, e, b, pool);
    if (w.violated()) return;
    const std::uint64_t wanted = (e.fields[3] + granule_bytes - 1) / granule_bytes;
    for (std::size_t i = 0; i < b.arenas.size(); ++i) {
      const arena_record& a = b.arenas.at(i);
      if (a.published == 0 || a.retired != 0 || a.dedicated) continue;
      // What is free now and was not released since the claim was free when the grower searched again.
      if (a.published_event > pool.claimed_event || a.released_event > pool.claimed_event) continue;
      promise(w, b.longest_free(a) < wanted, [&] {
        return named(w, e, "pool", e.fields[0]) + " grows for " + std::to_string(e.fields[3]) +
               " bytes although arena " + std::to_string(b.arenas.id_at(i)) + " had room when the grower searched";
      });
    }
  }

 private:
  // Each as large as all before it would say, up to the ceiling: a smaller one makes misses of requests that one arena
  // could have served, a larger one is a registration that nobody allowed.
  void judge_size(world& w, const logged_event& e, host_books& b, const pool_record& pool) {
    if (b.arena_max_bytes == 0) return;
    const std::uint64_t turn = pool.pooled_at_claim;
    const bool at_the_ceiling = turn >= 64 || b.arena_initial_bytes > b.arena_max_bytes >> turn;
    const std::uint64_t target = at_the_ceiling ? b.arena_max_bytes : b.arena_initial_bytes << turn;
    const std::uint64_t unit = std::max(b.page_bytes, granule_bytes);
    const std::uint64_t wanted = (std::max(target, e.fields[3]) + unit - 1) / unit * unit;
    promise(w, e.fields[1] == wanted, [&] {
      return named(w, e, "pool", e.fields[0]) + " grows by " + std::to_string(e.fields[1]) +
             " bytes for a request of " + std::to_string(e.fields[3]) + "; after " + std::to_string(turn) +
             " pooled arenas it is the turn of " + std::to_string(wanted);
    });
  }
};

class try_alloc_touches_no_device final : public invariant {
 public:
  try_alloc_touches_no_device()
      : invariant("PM-I17", "try_alloc causes no call of the backend",
                  {kind_of(event_id::try_alloc_ended), kind_of(event_id::map_submitted),
                   kind_of(event_id::growth_started), kind_of(event_id::unmap_submitted),
                   kind_of(event_id::operation_accepted), kind_of(hardware_event::driver_call)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const fiber_record* const fiber = b.fibers.find(e.fiber);
    const bool inside = fiber != nullptr && fiber->in_try_alloc != none;
    if (e.kind == event_id::try_alloc_ended)
      promise(w, true, [] { return ""; });
    else if (inside)
      promise(w, false, [&] { return named(w, e, "try_alloc of pool", fiber->in_try_alloc) + " calls the backend"; });
  }
};

bool refused_as_tombstone(host_books& b, const block_record& block) {
  const pages_record* const pages = block.pages != none ? b.pages.find(block.pages) : nullptr;
  return pages != nullptr && pages->refused;
}

class nothing_is_left_at_rest final : public invariant {
 public:
  nothing_is_left_at_rest()
      : invariant(
            "PM-I18",
            "when all is dropped and confirmed: nothing charged, nothing registered, and no page leaked but those "
            "whose tombstone the system refused",
            {}) {}
  void judge(world&, const logged_event&, host_books&) override {}
  void judge_at_rest(world& w, std::uint16_t host, host_books& b) override {
    if (b.pools.size() == 0 || b.hung != 0) return;
    std::uint64_t charged = 0;
    for (std::size_t i = 0; i < b.ledgers.size(); ++i) charged += b.ledgers.at(i).charged;
    for (std::size_t i = 0; i < b.regions.size(); ++i) {
      const region_record& region = b.regions.at(i);
      if (!region.confirmed && !region.forced) return;  // something is owed, and accounted for elsewhere
    }
    std::uint64_t kept = none;
    for (std::size_t i = 0; i < b.blocks.size(); ++i)
      if (!b.blocks.at(i).freed && !refused_as_tombstone(b, b.blocks.at(i))) kept = b.blocks.id_at(i);
    promise(w, charged == 0 && b.registered_bytes == 0 && kept == none, [&] {
      return "host " + std::string(host_name(w, host)) + " ends with " + std::to_string(charged) + " bytes charged, " +
             std::to_string(b.registered_bytes) + " registered" +
             (kept != none ? ", and block " + std::to_string(kept) + " not given back" : "");
    });
  }
};

class generations_are_unique final : public invariant {
 public:
  generations_are_unique()
      : invariant(
            "PM-I30", "generations are unique, and one that is out of service is in no new reference",
            {kind_of(event_id::arena_published), kind_of(event_id::map_answered), kind_of(event_id::reference_made)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::reference_made) {
      const arena_record* const a = b.arenas.find(e.fields[1]);
      promise(w, a != nullptr && a->published != 0 && a->retired == 0 && a->settled == 0,
              [&] { return "a reference names " + named(w, e, "arena", e.fields[1]) + ", which is not in service"; });
      return;
    }
    if (e.kind == event_id::arena_published) {
      promise(w, b.arenas.find(e.fields[0])->published == 1,
              [&] { return "generation " + named(w, e, "", e.fields[0]) + " was issued twice"; });
      return;
    }
    if (e.fields[3] == 0) return;
    const region_record& region = *b.regions.find(e.fields[1]);
    promise(w, region.unmaps == 0 && !region.confirmed,
            [&] { return named(w, e, "region", e.fields[1]) + " came back from a second map"; });
  }
};

class a_fresh_arena_satisfies_its_request final : public invariant {
 public:
  a_fresh_arena_satisfies_its_request()
      : invariant("PM-I31", "a fresh arena satisfies the request it was built for",
                  {kind_of(event_id::arena_published)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const arena_record& a = *b.arenas.find(e.fields[0]);
    if (a.adopted) return;
    promise(w, a.spans_granted != 0,
            [&] { return named(w, e, "arena", e.fields[0]) + " was published before its request was cut from it"; });
  }
};

class an_adopted_arena_is_born_empty final : public invariant {
 public:
  an_adopted_arena_is_born_empty()
      : invariant("PM-I47",
                  "an adopted arena was published empty while the pool was open, and nobody else grew until its map "
                  "had answered",
                  {kind_of(event_id::arena_published)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const arena_record& a = *b.arenas.find(e.fields[0]);
    if (!a.adopted) return;
    promise(w, a.spans_granted == 0 && a.live.empty() && !a.dedicated,
            [&] { return named(w, e, "arena", e.fields[0]) + " was adopted, and is not empty or serves one request"; });
    const pool_record* const pool = b.pool_of(a);
    if (pool == nullptr) return;
    promise(w, pool->step == none || pool->step < shutdown_step::close,
            [&] { return named(w, e, "arena", e.fields[0]) + " was adopted by a pool that is closed"; });
    promise(w, pool->growing == 1, [&] {
      return named(w, e, "arena", e.fields[0]) + " was adopted while " + std::to_string(pool->growing) +
             " pooled arenas are being built";
    });
  }
};

}  // namespace

void add_arenas(invariant_list& list) {
  list.push_back(std::make_unique<an_arena_is_in_one_place>());
  list.push_back(std::make_unique<an_adopted_arena_is_born_empty>());
  list.push_back(std::make_unique<one_map_for_one_demand>());
  list.push_back(std::make_unique<try_alloc_touches_no_device>());
  list.push_back(std::make_unique<nothing_is_left_at_rest>());
  list.push_back(std::make_unique<generations_are_unique>());
  list.push_back(std::make_unique<a_fresh_arena_satisfies_its_request>());
}

}  // namespace holdfast::invariants
