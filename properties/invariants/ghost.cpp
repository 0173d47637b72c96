#include <properties/invariants/ghost.hpp>

#include <holdfast/base/error.hpp>
#include <sim/drivers/ucp_double.hpp>

#include <algorithm>

namespace holdfast::invariants {

using holdfast::event_id;
using sim::hardware_event;
using sim::kind_of;

namespace {
constexpr std::uint32_t no_fiber = 0xffffffff;

void drop(std::vector<std::uint64_t>& list, std::uint64_t id) noexcept {
  const auto found = std::find(list.begin(), list.end(), id);
  if (found != list.end()) list.erase(found);
}
}  // namespace

void host_books::forget() {
  pages.forget();
  registrations.forget();
  blocks.forget();
  regions.forget();
  arenas.forget();
  spans.forget();
  operations.forget();
  requests.forget();
  ledgers.forget();
  pools.forget();
  reliefs.forget();
  steps.forget();
  connections.forget();
  endpoints.forget();
  keys.forget();
  workers.forget();
  contexts.forget();
  lanes.forget();
  for (auto& kind : quarantined) kind.forget();
  quarantines.forget();
  operation_keys.forget();
  fibers.forget();
  newest_incarnation.forget();
  replaced_incarnation.forget();
  queued.clear();
  open_requests.clear();
  progress_calls = progress_batch = 0;
  connect_timeout_ns = teardown_stalled_ns = 0;
  connections_max = 0;
  teardown_due_ns = never;
  calls_open = gates_closed = 0;
  arena_initial_bytes = arena_max_bytes = page_bytes = 0;
  registered_bytes = 0;
  holds = 0;
  registration_fiber = progress_fiber = gets_fiber = no_fiber;
  progress = progress_before = progress_state::unseen;
  transport = none;
  workers_destroyed = contexts_closed = witnesses = hung = absent = sweeps = 0;
  last_message_limit = 0;
  workers_open = failures = witnesses_of_this = 0;
  closing_since = idle_since = {};
  capabilities = none;
  probe_shared = probe_ended_well = probe_inline = probe_callback = registered_twice = false;
  idle_wakes = 0;
  worked = true;
  witnessed_epoch = none;
  cancelled = 0;
  touched = false;
}

void host_books::close_request(std::uint64_t request) noexcept {
  request_record* const r = requests.find(request);
  if (r == nullptr || !r->open) return;
  r->open = false;
  drop(open_requests, request);
}

void ghost::forget() noexcept {
  for (const std::uint16_t host : touched_) hosts_[host]->forget();
  touched_.clear();
}

host_books& ghost::books(const sim::logged_event& e) {
  if (hosts_.size() <= e.host) hosts_.resize(std::size_t{e.host} + 1);
  auto& slot = hosts_[e.host];
  if (!slot) slot = std::make_unique<host_books>();
  if (!slot->touched) {
    slot->touched = true;
    touched_.push_back(e.host);
  }
  return *slot;
}

std::int64_t ghost::stalled_ns(sim::world& w, std::uint16_t host) noexcept {
  return host < w.hosts().size() ? w.hosts()[host]->stalled_ns() : 0;
}

std::string_view ghost::host_name(sim::world& w, std::uint16_t host) noexcept {
  return host < w.hosts().size() ? std::string_view(w.hosts()[host]->name()) : std::string_view("?");
}

moment ghost::now(sim::world& w, const sim::logged_event& e) noexcept { return {e.time_ns, stalled_ns(w, e.host)}; }

std::int64_t ghost::elapsed_ns(sim::world& w, const sim::logged_event& e, const moment& then) noexcept {
  return e.time_ns - then.ns - (stalled_ns(w, e.host) - then.stalled_ns);
}

pool_record* ghost::pool_of_region(host_books& b, std::uint64_t region) noexcept {
  const region_record* const r = b.regions.find(region);
  const block_record* const block = r != nullptr ? b.blocks.find(r->block) : nullptr;
  pool_record* const pool = block != nullptr && block->pool != none ? b.pools.find(block->pool) : nullptr;
  return pool != nullptr && pool->opened ? pool : nullptr;
}

pool_record* ghost::pool_of(host_books& b, const arena_record& a) noexcept { return pool_of_region(b, a.region); }

std::uint64_t ghost::taken_granules(host_books& b, const arena_record& a) noexcept {
  std::uint64_t taken = 0;
  for (const std::uint64_t id : a.live) taken += b.spans.find(id)->size;
  return taken;
}

bool ghost::extent_of(host_books& b, const span_record& s, std::uint64_t& pages, std::uint64_t& first,
                      std::uint64_t& last) noexcept {
  const arena_record* const arena = b.arenas.find(s.generation);
  if (arena == nullptr) return false;
  const region_record* const region = b.regions.find(arena->region != none ? arena->region : s.generation);
  if (region == nullptr) return false;
  const block_record* const block = b.blocks.find(region->block);
  if (block == nullptr || block->pages == none) return false;
  pages = block->pages;
  first = s.offset * granule_bytes;
  last = first + s.size * granule_bytes;
  return true;
}

std::uint64_t ghost::open_request_into(host_books& b, std::uint64_t pages, std::uint64_t first,
                                       std::uint64_t last) noexcept {
  for (const std::uint64_t id : b.open_requests) {
    const request_record& r = *b.requests.find(id);
    if (r.pages == pages && r.offset < last && first < r.offset + r.bytes) return id;
  }
  return none;
}

std::uint64_t ghost::operation_of_write(host_books& b, const sim::logged_event& e) noexcept {
  if (e.fields[4] != 0) {
    const request_record* const r = b.requests.find(e.fields[4]);
    return r != nullptr ? r->operation : none;
  }
  const fiber_record* const fiber = b.fibers.find(e.fiber);
  return fiber != nullptr ? fiber->operation : none;
}

std::uint64_t ghost::live_span_in(host_books& b, std::uint64_t pages, std::uint64_t first, std::uint64_t last,
                                  std::uint64_t except) noexcept {
  const pages_record* const p = b.pages.find(pages);
  if (p == nullptr) return none;
  const arena_record* const arena = b.arenas.find(p->generation);
  if (arena == nullptr) return none;
  for (const std::uint64_t id : arena->live) {
    if (id == except) continue;
    const span_record& s = *b.spans.find(id);
    if (s.offset * granule_bytes < last && first < (s.offset + s.size) * granule_bytes) return id;
  }
  return none;
}

bool ghost::registered(host_books& b, std::uint64_t generation) noexcept {
  const arena_record* const arena = b.arenas.find(generation);
  if (arena == nullptr) return false;
  const region_record* const region = b.regions.find(arena->region != none ? arena->region : generation);
  if (region == nullptr || region->confirmed || region->forced) return false;
  const registration_record* const r = b.registrations.find(region->registration);
  return r != nullptr && r->alive;
}

std::uint64_t ghost::longest_free(host_books& b, const arena_record& a) noexcept {
  std::uint64_t longest = 0, at = 0;
  for (const std::uint64_t id : a.live) {
    const span_record& s = *b.spans.find(id);
    if (s.offset > at) longest = std::max(longest, s.offset - at);
    at = std::max(at, s.offset + s.size);
  }
  const std::uint64_t end = a.bytes / granule_bytes;
  return end > at ? std::max(longest, end - at) : longest;
}

std::vector<sim::event_kind> ghost::needs() {
  std::vector<sim::event_kind> out;
  for (const auto id : {event_id::ledger_opened,
                        event_id::ledger_reserved,
                        event_id::ledger_raised,
                        event_id::ledger_dropped,
                        event_id::ledger_committed,
                        event_id::ledger_released,
                        event_id::ledger_refused,
                        event_id::ledger_corrupt,
                        event_id::gate_closed,
                        event_id::gate_drained,
                        event_id::quarantine_entered,
                        event_id::quarantine_awaits,
                        event_id::quarantine_fence_begun,
                        event_id::quarantine_left,
                        event_id::quarantine_given_up,
                        event_id::quarantine_abandoned,
                        event_id::block_allocated,
                        event_id::block_freed,
                        event_id::block_leaked,
                        event_id::map_submitted,
                        event_id::map_answered,
                        event_id::unmap_submitted,
                        event_id::unmap_answered,
                        event_id::growth_claimed,
                        event_id::growth_started,
                        event_id::growth_ended,
                        event_id::arena_published,
                        event_id::arena_retired,
                        event_id::arena_unconfirmed,
                        event_id::arena_settled,
                        event_id::span_granted,
                        event_id::span_released,
                        event_id::hold_taken,
                        event_id::hold_dropped,
                        event_id::span_quarantined,
                        event_id::span_discharged,
                        event_id::buffer_lent,
                        event_id::buffer_returned,
                        event_id::get_abandoned,
                        event_id::pool_opened,
                        event_id::reclaim_began,
                        event_id::reclaim_ended,
                        event_id::pressure_relieved,
                        event_id::alloc_refused,
                        event_id::try_alloc_began,
                        event_id::try_alloc_ended,
                        event_id::shutdown_started,
                        event_id::shutdown_step,
                        event_id::shutdown_ended,
                        event_id::operation_accepted,
                        event_id::operation_submitted,
                        event_id::operation_posted,
                        event_id::operation_abandoned,
                        event_id::operation_orphaned,
                        event_id::operation_ended,
                        event_id::waiter_told,
                        event_id::transport_state,
                        event_id::connection_state,
                        event_id::endpoint_state,
                        event_id::hello_accepted,
                        event_id::peer_lost,
                        event_id::peer_declared_dead,
                        event_id::transport_failed,
                        event_id::transport_capabilities,
                        event_id::message_copied,
                        event_id::progress_woke,
                        event_id::key_state,
                        event_id::key_used,
                        event_id::progress_state,
                        event_id::table_swept,
                        event_id::witness_issued,
                        event_id::teardown_hung})
    out.push_back(kind_of(id));
  for (const auto id :
       {hardware_event::host_crashed, hardware_event::op_began, hardware_event::op_ended, hardware_event::cancel_fired,
        hardware_event::pages_owned, hardware_event::pages_returned, hardware_event::pages_tombstoned,
        hardware_event::pages_tombstone_refused, hardware_event::nic_registered, hardware_event::nic_deregistered,
        hardware_event::nic_deregister_failed, hardware_event::dma_write, hardware_event::driver_get_posted,
        hardware_event::driver_get_completed, hardware_event::driver_callback, hardware_event::driver_call,
        hardware_event::driver_lane_shared, hardware_event::driver_worker_destroyed,
        hardware_event::driver_context_closed})
    out.push_back(kind_of(id));
  return out;
}

namespace {

// Whether the device's bytes of a registration still count against core's books.
void discharge(host_books& b, registration_record& r) noexcept {
  if (r.discharged) return;
  r.discharged = true;
  const pages_record* const pages = b.pages.find(r.pages);
  if (pages != nullptr && pages->block != none) b.registered_bytes -= std::min(b.registered_bytes, r.bytes);
}

void end_region(host_books& b, region_record& region) noexcept {
  if (region.registration != none)
    if (registration_record* const r = b.registrations.find(region.registration)) discharge(b, *r);
  if (!region.open) return;
  region.open = false;
  if (block_record* const block = b.blocks.find(region.block))
    if (block->regions_open != 0) --block->regions_open;
}

// Which pooled arenas could go without falling below what is kept warm, and since when.
void see_floor(sim::world& w, host_books& b, const sim::logged_event& e) noexcept {
  std::uint64_t pooled = 0;
  const auto serves = [](const arena_record& a) { return a.published != 0 && a.retired == 0 && !a.dedicated; };
  for (std::size_t i = 0; i < b.arenas.size(); ++i)
    if (serves(b.arenas.at(i))) pooled += b.arenas.at(i).charge;
  for (std::size_t i = 0; i < b.arenas.size(); ++i) {
    arena_record& a = b.arenas.at(i);
    if (!serves(a)) continue;
    const pool_record* const pool = ghost::pool_of(b, a);
    if (pool == nullptr || pooled - a.charge < pool->retain_bytes)
      a.above_floor_since = {};
    else if (!a.above_floor_since.set())
      a.above_floor_since = ghost::now(w, e);
  }
}

void see_ledger(host_books& b, event_id id, const std::uint64_t* f) {
  ledger_record& l = b.ledgers[f[0]];
  const std::uint64_t bytes = f[1], charged = f[2];
  const auto take = [&l](std::uint64_t& from, std::uint64_t n) {
    if (n > from) l.counted_down_below = true;
    from -= std::min(from, n);
  };
  switch (id) {
    case event_id::ledger_opened: l.ceiling = bytes; return;
    case event_id::ledger_refused:
      l.ceiling = f[3];
      ++l.refusals;
      return;
    case event_id::ledger_reserved: l.open += bytes; break;
    case event_id::ledger_raised: l.open += bytes; break;
    case event_id::ledger_dropped: take(l.open, bytes); break;
    case event_id::ledger_committed:
      take(l.open, bytes);
      l.committed += bytes;
      break;
    case event_id::ledger_released: take(l.committed, bytes); break;
    case event_id::ledger_corrupt: l.corrupt = true; return;
    default: return;
  }
  l.before = l.charged;
  l.charged = charged;
}

void see_span(sim::world& w, host_books& b, event_id id, const sim::logged_event& e) {
  const std::uint64_t* const f = e.fields;
  span_record& s = b.spans[f[0]];
  arena_record& a = b.arenas[f[1]];
  switch (id) {
    case event_id::span_granted: {
      const bool known = s.live();
      s = span_record{.generation = f[1],
                      .offset = f[2],
                      .size = f[3],
                      .length = f[4],
                      .granted = s.granted + 1,
                      .released = s.released};
      if (known) {
        s.collides = f[0];
        break;
      }
      ++a.spans_granted;
      a.empty_since = {};
      a.said_free = f[5];
      auto at = a.live.begin();
      for (; at != a.live.end(); ++at) {
        const span_record& other = *b.spans.find(*at);
        if (other.offset < s.offset + s.size && s.offset < other.offset + other.size) s.collides = *at;
        if (other.offset >= s.offset) break;
      }
      a.live.insert(at, f[0]);
      break;
    }
    case event_id::span_released:
      ++s.released;
      s.released_wrong = s.granted == 0 || s.generation != f[1] || s.offset != f[2] || s.size != f[3];
      a.released_event = e.number;
      drop(a.live, f[0]);
      a.said_free = f[4];
      if (a.live.empty()) a.empty_since = ghost::now(w, e);
      break;
    case event_id::hold_taken:
      ++s.holds;
      ++a.holds;
      ++b.holds;
      // The backend numbers the operation when it accepts it, next on this fiber.
      b.fibers[e.fiber].held_span = f[0];
      break;
    case event_id::hold_dropped:
      --s.holds;
      if (a.holds != 0) --a.holds;
      if (b.holds != 0) --b.holds;
      if (a.holds == 0) {
        a.quiet_since_ns = e.time_ns;
        a.quiet_event = e.number;
      }
      break;
    default: break;
  }
}

void see_arena(sim::world& w, host_books& b, event_id id, const sim::logged_event& e) {
  const std::uint64_t* const f = e.fields;
  arena_record& a = b.arenas[f[0]];
  switch (id) {
    case event_id::arena_published:
      ++a.published;
      a.region = f[1];
      a.bytes = f[2];
      a.charge = f[3];
      a.dedicated = f[4] != 0;
      a.adopted = f[5] != 0;
      a.published_event = e.number;
      if (const region_record* const region = b.regions.find(f[1]))
        if (const block_record* const block = b.blocks.find(region->block))
          if (pages_record* const pages = b.pages.find(block->pages)) pages->generation = f[0];
      if (a.adopted && a.live.empty()) a.empty_since = ghost::now(w, e);
      if (pool_record* const pool = a.dedicated ? nullptr : ghost::pool_of(b, a)) ++pool->pooled;
      see_floor(w, b, e);
      break;
    case event_id::arena_retired:
      ++a.retired;
      a.region = f[1];
      a.reason = f[4];
      a.retired_at = ghost::now(w, e);
      a.retired_event = e.number;
      if (pool_record* const pool = a.dedicated || a.published == 0 ? nullptr : ghost::pool_of(b, a);
          pool != nullptr && pool->pooled != 0)
        --pool->pooled;
      see_floor(w, b, e);
      if (f[4] == retire_reason::shutdown)
        for (std::size_t i = 0; i < b.pools.size(); ++i)
          if (b.pools.at(i).shutdowns != 0) ++b.pools.at(i).swept;
      break;
    case event_id::arena_unconfirmed:
      ++a.unconfirmed;
      a.charge = f[2];
      break;
    case event_id::arena_settled:
      ++a.settled;
      a.charge = f[2];
      a.forced = f[3] != 0;
      if (region_record* const region = b.regions.find(f[1])) region->settled = true;
      if (a.forced)
        if (region_record* const region = b.regions.find(f[1])) {
          region->forced = true;
          end_region(b, *region);
        }
      break;
    default: break;
  }
}

void see_quarantine(host_books& b, event_id id, const std::uint64_t* f) {
  quarantine_record& q = b.quarantines[f[0]];
  if (id == event_id::quarantine_abandoned) {
    q.entries_before = q.entries;
    q.bytes_before = q.bytes;
    q.entries = q.bytes = 0;
    for (auto& kind : b.quarantined)
      for (std::size_t i = 0; i < kind.size(); ++i)
        if (kind.at(i).quarantine == f[0] && kind.at(i).inside()) ++kind.at(i).abandoned;
    return;
  }
  if (f[1] >= quarantine_kinds) return;
  quarantined_record& r = b.quarantined[f[1]][f[2]];
  switch (id) {
    case event_id::quarantine_entered:
      ++r.entered;
      r.quarantine = f[0];
      r.bytes = f[3];
      r.accepts = f[5];
      r.operation = r.epoch = r.context = r.first_fence = r.last_fence = 0;
      ++q.entries;
      q.bytes += r.bytes;
      break;
    case event_id::quarantine_awaits:
      r.operation = f[3];
      r.epoch = f[4];
      r.context = f[5];
      break;
    case event_id::quarantine_fence_begun:
      if (r.first_fence == 0) r.first_fence = f[3];
      r.last_fence = f[3];
      break;
    case event_id::quarantine_given_up:
      ++r.abandoned;
      q.entries -= std::min<std::uint64_t>(q.entries, 1);
      q.bytes -= std::min(q.bytes, f[3]);
      break;
    case event_id::quarantine_left:
      ++r.left;
      q.entries -= std::min<std::uint64_t>(q.entries, 1);
      q.bytes -= std::min(q.bytes, f[3]);
      break;
    default: break;
  }
}

void see_core(sim::world& w, host_books& b, event_id id, const sim::logged_event& e) {
  const std::uint64_t* const f = e.fields;
  switch (id) {
    case event_id::ledger_opened:
    case event_id::ledger_reserved:
    case event_id::ledger_raised:
    case event_id::ledger_dropped:
    case event_id::ledger_committed:
    case event_id::ledger_released:
    case event_id::ledger_refused:
    case event_id::ledger_corrupt:
      see_ledger(b, id, f);
      if (id == event_id::ledger_committed) {
        std::uint64_t& mapped = b.fibers[e.fiber].mapped;
        if (region_record* const region = mapped != none ? b.regions.find(mapped) : nullptr) region->charge = f[1];
        mapped = none;
      }
      break;

    case event_id::quarantine_entered:
    case event_id::quarantine_awaits:
    case event_id::quarantine_fence_begun:
    case event_id::quarantine_left:
    case event_id::quarantine_given_up:
    case event_id::quarantine_abandoned: see_quarantine(b, id, f); break;

    case event_id::gate_closed: {
      ++b.gates_closed;
      const std::uint64_t pool = b.fibers[e.fiber].in_gate_step;
      if (pool == none) break;
      pool_record& p = b.pools[pool];
      (p.operations.gate == none ? p.operations : p.transfers) = {f[0], false};
      break;
    }
    case event_id::gate_drained:
      for (std::size_t i = 0; i < b.pools.size(); ++i)
        for (auto* const gate : {&b.pools.at(i).operations, &b.pools.at(i).transfers})
          if (gate->gate == f[0]) gate->drained = true;
      break;

    case event_id::block_allocated: {
      block_record& block = b.blocks[f[0]];
      block.bytes = f[1];
      std::uint64_t& pages = b.fibers[e.fiber].pages;
      block.pages = pages;
      if (pages_record* const p = b.pages.find(pages)) p->block = f[0];
      pages = none;
      break;
    }
    case event_id::block_freed: b.blocks[f[0]].freed = true; break;
    case event_id::block_leaked: b.blocks[f[0]].leaked = true; break;
    case event_id::map_submitted: {
      block_record& block = b.blocks[f[0]];
      ++block.maps_open;
      block.mapped = true;
      block.pool = b.fibers[e.fiber].growing;
      b.fibers[e.fiber].growing = none;
      break;
    }
    case event_id::map_answered: {
      block_record& block = b.blocks[f[0]];
      if (block.maps_open != 0) --block.maps_open;
      if (f[3] == 0) break;
      region_record& region = b.regions[f[1]];
      region.block = f[0];
      region.bytes = f[2];
      region.open = true;
      ++block.regions_open;
      b.fibers[e.fiber].mapped = f[1];
      for (std::size_t i = b.registrations.size(); i-- != 0;) {
        registration_record& r = b.registrations.at(i);
        if (r.pages != block.pages || r.region != none) continue;
        r.region = f[1];
        region.registration = b.registrations.id_at(i);
        break;
      }
      break;
    }
    case event_id::unmap_submitted: {
      region_record& region = b.regions[f[0]];
      ++region.unmaps;
      ++region.unanswered;
      ++region.accepted;
      if (arena_record* const a = b.arenas.find(f[1])) ++a->unmaps;
      break;
    }
    case event_id::unmap_answered: {
      region_record& region = b.regions[f[0]];
      if (region.unanswered != 0) --region.unanswered;
      region.last_refused = f[2] == verdict::refused;
      if (region.last_refused && region.accepted != 0) --region.accepted;
      if (f[2] == verdict::confirmed) {
        region.confirmed = true;
        end_region(b, region);
      }
      break;
    }

    case event_id::growth_claimed:
      b.pools[f[0]].claimed_event = e.number;
      b.pools[f[0]].pooled_at_claim = b.pools[f[0]].pooled;
      break;
    case event_id::pool_opened: {
      pool_record& pool = b.pools[f[0]];
      pool = pool_record{};
      pool.opened = true;
      pool.reclaim_after_ns = static_cast<std::int64_t>(f[1]);
      pool.retain_bytes = f[2];
      pool.unmap_timeout_ns = static_cast<std::int64_t>(f[3]);
      pool.retries = f[4];
      pool.pressure = f[5] != 0;
      break;
    }
    case event_id::reclaim_began: {
      fiber_record& fiber = b.fibers[e.fiber];
      fiber.reclaims = f[0];
      fiber.reclaim_event = e.number;
      fiber.reclaim_mode = f[1];
      if (f[1] == reclaim_mode::pressure) ++b.pools[f[0]].pressure_sweeps;
      break;
    }
    case event_id::pressure_relieved: {
      relief_record& relief = b.reliefs[ghost::relief_id(f[0], f[1])];
      ++relief.relieved;
      ++b.pools[f[0]].reliefs;
      break;
    }
    case event_id::alloc_refused:
      if (f[1] != 0) ++b.reliefs[ghost::relief_id(f[0], f[1])].refused;
      if (f[3] == static_cast<std::uint64_t>(holdfast::error_code::cancelled)) ++b.cancelled;
      break;
    case event_id::get_abandoned:
      ++b.cancelled;
      if (const span_record* const s = b.spans.find(f[0]))
        if (operation_record* const o = b.operations.find(s->operation)) ++o->abandoned;
      break;
    case event_id::growth_started:
      ++b.pools[f[0]].building;
      b.fibers[e.fiber].growing = f[0];
      if (f[2] == 0) {
        pool_record& pool = b.pools[f[0]];
        pool.overlapped = pool.growing != 0;
        ++pool.growing;
      }
      break;
    case event_id::growth_ended:
      if (pool_record& pool = b.pools[f[0]]; pool.building != 0) --pool.building;
      if (arena_record* const a = b.arenas.find(f[1])) a->served_event = e.number;
      if (f[3] == 0) {
        pool_record& pool = b.pools[f[0]];
        if (pool.growing != 0) --pool.growing;
      }
      break;
    case event_id::arena_published:
    case event_id::arena_retired:
    case event_id::arena_unconfirmed:
    case event_id::arena_settled: see_arena(w, b, id, e); break;

    case event_id::span_granted:
    case event_id::span_released:
    case event_id::hold_taken:
    case event_id::hold_dropped: see_span(w, b, id, e); break;
    case event_id::span_quarantined: b.spans[f[0]].quarantined = true; break;
    case event_id::span_discharged: b.spans[f[0]].quarantined = false; break;
    case event_id::buffer_lent: {
      span_record& s = b.spans[f[0]];
      s.lent = true;
      s.operation = f[1];
      b.operations[f[1]].span = f[0];
      b.fibers[e.fiber].held_span = none;
      break;
    }
    case event_id::buffer_returned:
      b.spans[f[0]].lent = false;
      if (operation_record* const o = b.operations.find(f[1])) ++o->returned;
      break;
    case event_id::try_alloc_began: {
      fiber_record& fiber = b.fibers[e.fiber];
      fiber.in_try_alloc = f[0];
      fiber.try_event = e.number;
      fiber.try_bytes = f[1];
      break;
    }
    case event_id::try_alloc_ended: b.fibers[e.fiber].in_try_alloc = none; break;

    case event_id::shutdown_started: {
      pool_record& pool = b.pools[f[0]];
      ++pool.shutdowns;
      pool.started_ns = e.time_ns;
      pool.started_stalled_ns = ghost::stalled_ns(w, e.host);
      pool.deadline_ns = static_cast<std::int64_t>(f[1]);
      b.fibers[e.fiber].in_gate_step = f[0];
      break;
    }
    case event_id::shutdown_step:
      b.pools[f[0]].step = f[1];
      if (f[1] == shutdown_step::sweep) b.pools[f[0]].sweep_event = e.number;
      b.fibers[e.fiber].in_gate_step = f[1] == shutdown_step::gate ? f[0] : none;
      break;
    case event_id::shutdown_ended: ++b.pools[f[0]].ended; break;

    case event_id::operation_accepted: {
      operation_record& o = b.operations[f[0]];
      ++o.accepted;
      o.worker_id = f[1];
      o.incarnation = f[2];
      o.bytes = f[3];
      o.kind = f[4];
      o.accepted_ns = e.time_ns;
      o.accepted_stalled_ns = ghost::stalled_ns(w, e.host);
      o.accepted_fiber = e.fiber;
      b.queued.push_back(f[0]);
      if (f[4] != operation_kind::get) break;
      std::uint64_t& held = b.fibers[e.fiber].held_span;
      if (span_record* const s = held != none ? b.spans.find(held) : nullptr) {
        s->operation = f[0];
        o.span = held;
      }
      held = none;
      break;
    }
    case event_id::operation_submitted: {
      operation_record& o = b.operations[f[0]];
      ++o.submitted;
      o.connection = f[1];
      b.worked = true;
      b.fibers[e.fiber].operation = f[0];
      drop(b.queued, f[0]);
      break;
    }
    case event_id::operation_posted: ++b.operations[f[0]].posted; break;
    case event_id::operation_orphaned: ++b.operations[f[0]].orphaned; break;
    case event_id::operation_abandoned:
      ++b.operations[f[0]].abandoned;
      ++b.cancelled;
      break;
    case event_id::operation_ended: {
      operation_record& o = b.operations[f[0]];
      ++o.ended;
      o.exit = f[1];
      drop(b.queued, f[0]);
      if (o.kind == operation_kind::get) {
        b.probe_inline = b.probe_inline || f[1] == operation_exit::inline_done;
        b.probe_callback = b.probe_callback || f[1] == operation_exit::callback;
        if (f[1] == operation_exit::inline_done) {
          b.probe_ended_well = true;
          const lane_record* const lane = b.lanes.find(b.fibers[e.fiber].last_lane);
          b.probe_shared = b.probe_shared || (lane != nullptr && lane->shared);
        }
      }
      if (fiber_record& fiber = b.fibers[e.fiber]; fiber.operation == f[0]) fiber.operation = none;
      if (const std::uint64_t* const key = b.operation_keys.find(f[0]))
        if (key_record& k = b.keys[*key]; k.in_use != 0 && o.ended == 1) --k.in_use;
      break;
    }
    case event_id::waiter_told: {
      operation_record& o = b.operations[f[0]];
      ++o.told;
      o.succeeded = f[1] != 0;
      break;
    }

    case event_id::transport_state:
      b.transport = f[1];
      if (f[1] == transport_state::absent) ++b.absent;
      if (f[1] == transport_state::probing) {
        // A transport brings threads of its own.
        b.registration_fiber = b.progress_fiber = b.gets_fiber = no_fiber;
        b.progress = b.progress_before = progress_state::unseen;
        b.absent = b.failures = b.witnesses_of_this = 0;
        b.workers_destroyed = b.contexts_closed = b.workers_open = 0;
        b.workers.forget();
        b.contexts.forget();
        b.capabilities = none;
        b.probe_shared = b.probe_ended_well = b.probe_inline = b.probe_callback = b.registered_twice = false;
        b.idle_since = {};
        // What a transport remembers of its peers' lives it forgets with them.
        b.newest_incarnation.forget();
        b.replaced_incarnation.forget();
      }
      if (f[1] == transport_state::closing) b.closing_since = ghost::now(w, e);
      break;
    case event_id::connection_state: {
      connection_record& c = b.connections[f[0]];
      if (c.state == connection_state::unseen) c.began = ghost::now(w, e);
      c.before = c.state;
      c.state = f[3];
      b.worked = true;
      if (f[2] != 0) {
        c.worker_id = f[1];
        c.incarnation = f[2];
      }
      if (f[3] == connection_state::lost) ++c.lost;
      break;
    }
    case event_id::hello_accepted: {
      connection_record& c = b.connections[f[0]];
      ++c.greeted;
      c.probing = b.capabilities == none;
      c.worker_id = f[1];
      c.incarnation = f[2];
      break;
    }
    case event_id::peer_lost: ++b.connections[f[2]].reported; break;
    case event_id::peer_declared_dead: b.replaced_incarnation[f[1]] = f[0]; break;
    case event_id::transport_failed: ++b.failures; break;
    case event_id::transport_capabilities: b.capabilities = f[2]; break;
    case event_id::message_copied: b.worked = true; break;
    case event_id::progress_woke:
      if (b.worked || !b.idle_since.set() || ghost::elapsed_ns(w, e, b.idle_since) > 1'000'000'000) {
        b.idle_since = ghost::now(w, e);
        b.idle_wakes = 0;
      }
      // A deadline is work: who set it wanted it.
      if (f[1] != wake_cause::deadline) ++b.idle_wakes;
      b.worked = false;
      break;
    case event_id::endpoint_state: {
      endpoint_record& p = b.endpoints[f[0]];
      p.before = p.state;
      p.state = f[2];
      p.connection = f[1];
      p.lane = f[3];
      if (p.before == endpoint_state::unseen)
        if (const connection_record* const c = b.connections.find(f[1])) p.life = c->incarnation;
      b.worked = true;
      if (f[2] == endpoint_state::failed) ++p.failed;
      if (f[2] == endpoint_state::flushing || f[2] == endpoint_state::forced) ++p.closed;
      break;
    }
    case event_id::key_state: {
      key_record& k = b.keys[f[0]];
      k.state = f[3];
      k.connection = f[1];
      if (f[3] != key_state::destroyed) break;
      ++k.destroyed;
      k.in_use_at_the_end = k.in_use;
      break;
    }
    case event_id::key_used: {
      key_record& k = b.keys[f[0]];
      k.after_end = k.destroyed != 0;
      ++k.in_use;
      b.operation_keys[f[1]] = f[0];
      break;
    }
    case event_id::progress_state:
      b.progress_before = b.progress;
      b.progress = f[1];
      if (b.progress_fiber == no_fiber) b.progress_fiber = e.fiber;
      break;
    case event_id::table_swept: ++b.sweeps; break;
    case event_id::witness_issued:
      ++b.witnesses;
      ++b.witnesses_of_this;
      b.witnessed_epoch = f[0];
      break;
    case event_id::teardown_hung: ++b.hung; break;
    default: break;
  }
}

using library_function = sim::ucp_double::function;

void see_call(host_books& b, library_function f, const sim::logged_event& e) {
  const std::uint64_t object = e.fields[1];
  if (f == library_function::ucp_worker_progress && e.fiber == b.progress_fiber) ++b.progress_calls;
  switch (f) {
    case library_function::ucp_worker_query:
    case library_function::ucp_worker_get_efd:
    case library_function::ucp_worker_arm:
    case library_function::ucp_worker_progress:
    case library_function::ucp_worker_set_am_recv_handler:
    case library_function::ucp_worker_get_address:
    case library_function::ucp_worker_destroy:
    case library_function::ucp_listener_create:
    case library_function::ucp_ep_create: {
      if (object == 0) break;
      worker_record& one = b.workers[object];
      if (one.fiber == no_fiber && !one.destroyed) {
        one.fiber = e.fiber;
        ++b.workers_open;
      } else if (one.fiber != e.fiber) {
        one.stranger = e.fiber;
      }
      break;
    }
    case library_function::ucp_worker_create: {
      context_record& one = b.contexts[object];
      if (one.progress_fiber == no_fiber) one.progress_fiber = e.fiber;
      one.two_progress = one.two_progress || one.progress_fiber != e.fiber;
      break;
    }
    case library_function::ucp_mem_map: {
      context_record& one = b.contexts[object];
      if (one.registration_fiber == no_fiber) one.registration_fiber = e.fiber;
      one.two_registration = one.two_registration || one.registration_fiber != e.fiber;
      break;
    }
    case library_function::ucp_ep_close_nbx: ++b.lanes[object].closes; break;
    case library_function::ucp_get_nbx: b.fibers[e.fiber].last_lane = object; break;
    default: break;
  }
}

void see_hardware(host_books& b, hardware_event id, const sim::logged_event& e) {
  const std::uint64_t* const f = e.fields;
  switch (id) {
    case hardware_event::driver_call: see_call(b, static_cast<library_function>(f[0]), e); break;
    case hardware_event::op_began: ++b.steps[f[0]].began; break;
    case hardware_event::op_ended:
      ++b.steps[f[0]].ended;
      for (const std::uint64_t id : b.queued)
        if (operation_record& o = b.operations[id]; o.accepted_fiber == e.fiber && o.calls_when_left == none)
          o.calls_when_left = b.progress_calls;
      break;
    case hardware_event::cancel_fired: ++b.cancelled; break;
    case hardware_event::pages_owned:
      b.pages[f[0]] = pages_record{.bytes = f[1], .owned = true};
      b.fibers[e.fiber].pages = f[0];
      break;
    case hardware_event::pages_tombstone_refused:
      if (pages_record* const p = b.pages.find(e.fields[0])) p->refused = true;
      break;
    case hardware_event::pages_returned:
    case hardware_event::pages_tombstoned:
      if (pages_record* const p = b.pages.find(f[0])) p->owned = false;
      break;
    case hardware_event::nic_registered: {
      for (std::size_t i = 0; i < b.registrations.size(); ++i)
        if (const registration_record& r = b.registrations.at(i); r.pages == f[1] && r.alive) b.registered_twice = true;
      b.registrations[f[0]] = registration_record{.pages = f[1], .offset = f[2], .bytes = f[3], .alive = true};
      if (const pages_record* const p = b.pages.find(f[1]); p != nullptr && p->block != none)
        b.registered_bytes += f[3];
      if (b.registration_fiber == no_fiber) b.registration_fiber = e.fiber;
      break;
    }
    case hardware_event::nic_deregistered: {
      registration_record& r = b.registrations[f[0]];
      r.alive = false;
      discharge(b, r);
      break;
    }
    case hardware_event::nic_deregister_failed: b.registrations[f[0]].failed = true; break;
    case hardware_event::driver_get_posted: {
      fiber_record& fiber = b.fibers[e.fiber];
      request_record& r = b.requests[f[0]];
      const lane_record* const lane = b.lanes.find(f[4]);
      r = request_record{.operation = fiber.operation,
                         .pages = f[1],
                         .offset = f[2],
                         .bytes = f[3],
                         .open = true,
                         .shared = lane != nullptr && lane->shared,
                         .fiber = e.fiber};
      if (operation_record* const o = b.operations.find(fiber.operation)) o->request = f[0];
      fiber.operation = none;
      b.open_requests.push_back(f[0]);
      if (b.gets_fiber == no_fiber) b.gets_fiber = e.fiber;
      break;
    }
    case hardware_event::driver_lane_shared: b.lanes[f[0]].shared = true; break;
    case hardware_event::driver_get_completed:
      if (const request_record* const r = b.requests.find(f[0]); r != nullptr && f[1] == 0) {
        b.probe_ended_well = true;
        b.probe_shared = b.probe_shared || r->shared;
      }
      b.close_request(f[0]);
      break;
    case hardware_event::driver_callback:
      b.worked = true;
      if (request_record* const r = b.requests.find(f[0])) ++r->callbacks;
      break;
    case hardware_event::dma_write:
      if (operation_record* const o = b.operations.find(ghost::operation_of_write(b, e))) o->landed += f[2];
      break;
    case hardware_event::driver_worker_destroyed:
      ++b.workers_destroyed;
      if (worker_record& gone = b.workers[f[0]]; !gone.destroyed) {
        gone.destroyed = true;
        if (gone.fiber != no_fiber && b.workers_open != 0) --b.workers_open;
      }
      // A transport may have two; while one is left, nothing says which requests were whose.
      while (b.workers_open == 0 && !b.open_requests.empty()) {
        const std::uint64_t request = b.open_requests.back();
        b.requests[request].swept = true;
        b.close_request(request);
      }
      break;
    case hardware_event::driver_context_closed:
      ++b.contexts_closed;
      if (b.contexts_closed < b.contexts.size()) break;
      for (std::size_t i = 0; i < b.registrations.size(); ++i) {
        registration_record& r = b.registrations.at(i);
        r.alive = false;
        discharge(b, r);
      }
      break;
    default: break;
  }
}

}  // namespace

void ghost::see(sim::world& w, const sim::logged_event& e) {
  if (e.host == 0xffff) return;
  host_books& b = books(e);
  if (!is_hardware(e.kind)) {
    see_core(w, b, static_cast<event_id>(e.kind), e);
    return;
  }
  const auto id = static_cast<hardware_event>(static_cast<std::uint16_t>(e.kind) & ~sim::hardware_bit);
  if (id == hardware_event::host_crashed) {
    b.forget();
    b.touched = true;  // still in the list
    return;
  }
  see_hardware(b, id, e);
}

}  // namespace holdfast::invariants
