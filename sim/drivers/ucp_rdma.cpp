// The one-sided lane: GETs that queue pairs carry, without anybody's progress.
//
// Why this exists: over a card with queue pairs the owner of memory takes no part in a read. What core may conclude
// from a silent owner, a closed endpoint, a dead key or a lost device differs from the emulated lanes in every point.
//
// A GET leaves when it is posted. The owner's card reads, in pieces, if the key names a registration that covers the
// range; the reader's card writes each piece when it arrives; the completion waits in the reader's worker for its
// progress. Completions keep the order of their queue pair.
//
//   key that is dead, foreign or stale    the access is refused and kills the reader's queue pair: its endpoint fails
//   endpoint closed or failed             a fence: no piece is read or written for it any more
//   no queue pair at the other end        the reader's dies after `rdma_retry_ns`
//   port down, or no way                  the transfer waits; after `rdma_retry_ns` the queue pair dies
//   device failed                         keys are dead, what was outstanding is flushed with errors later
//
// Units       Bytes, virtual nanoseconds.
// Threading   One OS thread; world events.
#include <sim/drivers/ucp_double.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace holdfast::sim::ucp_double {

namespace {

constexpr std::int64_t look_again_ns = 1'000'000;

/// One GET on its way. Shared by its world events.
struct transfer {
  std::weak_ptr<const char> alive;  // of the reader's library
  endpoint* on = nullptr;
  std::uint64_t request = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t done = 0;  // read at the owner
  std::uint64_t piece_bytes = 0;
  std::int64_t gives_up_ns = 0;
};

bool is_over(const transfer& t) {
  if (t.alive.expired() || t.on->queue_pair_dead || t.on->owner.gone) return true;
  return !t.on->owner.outstanding.contains(t.request);
}

void kill_queue_pair(endpoint& e, ucs_status_t status) {
  if (std::exchange(e.queue_pair_dead, true)) return;
  if (!e.peer_mode) {
    // Nobody is told of the endpoint, but the work that the queue pair had ends all the same.
    for (const auto& [number, r] : e.owner.outstanding) {
      if (r->on == &e && r->what == request_kind::get) finish_later(*r, status, e.lib.settings.cancel_spread_ns);
    }
    return;
  }
  auto m = std::make_unique<message>(message_kind::broke);
  m->to = &e;
  m->status = status;
  e.owner.receive(std::move(m));
}

/// The endpoint at the other end of the stream, if it has a queue pair that lives.
bool has_partner(const endpoint& e) {
  for (const worker* const w : library_of(*e.peer).workers) {
    for (const endpoint* const other : w->endpoints) {
      if (other->where == e.where && other != &e && !other->queue_pair_dead) return true;
    }
  }
  return false;
}

std::int64_t wire_ns(world& w, std::uint64_t bytes) {
  const link_settings& link = fabric::of(w).settings;
  std::int64_t time_ns =
      link.latency_ns + static_cast<std::int64_t>(bytes) * 1000 / std::max<std::int64_t>(1, link.bytes_per_us);
  if (link.jitter_ns > 0) {
    time_ns += static_cast<std::int64_t>(w.stream("rdma").below(static_cast<std::uint64_t>(link.jitter_ns) + 1));
  }
  return time_ns;
}

void land(const std::shared_ptr<transfer>& t, std::uint64_t offset, const std::vector<std::byte>& bytes) {
  if (is_over(*t)) return;
  endpoint& e = *t->on;
  request& r = *e.owner.outstanding.find(t->request)->second;
  if (nic_of(e.lib.owner).failed()) return;
  if (!memory_of(e.lib.owner).dma_write(r.destination + offset, bytes.data(), bytes.size(), 0, r.admission)) return;
  r.landed += bytes.size();
  if (r.landed == r.bytes && !r.ending) finish_later(r, UCS_OK, 0);
}

void read_piece(const std::shared_ptr<transfer>& t) {
  if (is_over(*t)) return;
  endpoint& e = *t->on;
  world& w = e.lib.the_world();
  host& owner = *e.peer;
  // Of a dead process the stream's end tells, in its own time.
  if (!owner.alive() || owner.life() != e.peer_life) return;
  fabric& net = fabric::of(w);
  const bool way = net.has_way(e.lib.owner, owner) && net.has_way(owner, e.lib.owner) && nic_of(owner).port_up() &&
                   nic_of(e.lib.owner).port_up() && has_partner(e);
  if (!way) {
    if (w.now() >= t->gives_up_ns) {
      kill_queue_pair(e, UCS_ERR_ENDPOINT_TIMEOUT);
    } else {
      w.at(std::min(t->gives_up_ns, w.now() + look_again_ns), [t] { read_piece(t); });
    }
    return;
  }
  t->gives_up_ns = w.now() + e.lib.settings.rdma_retry_ns;
  const request& r = *e.owner.outstanding.find(t->request)->second;
  const std::uint64_t registration = library_of(owner).registration_named(r.with->number_packed);
  const std::uint64_t bytes = std::min(t->piece_bytes, t->bytes - t->done);
  const auto* const from = reinterpret_cast<const std::byte*>(t->address + t->done);
  host_memory& there = memory_of(owner);
  if (r.stale || registration == 0 || nic_of(owner).failed() || !there.registered(from, bytes, registration)) {
    w.log(&e.lib.owner, hardware_event::nic_access_refused, e.number, registration);
    kill_queue_pair(e, UCS_ERR_IO_ERROR);
    return;
  }
  std::vector<std::byte> copy(bytes);
  there.dma_read(copy.data(), from, bytes, registration, true);
  const std::uint64_t offset = t->done;
  t->done += bytes;
  e.last_completion_ns = std::max(e.last_completion_ns, w.now() + wire_ns(w, bytes));
  w.at(e.last_completion_ns, [t, offset, copy = std::move(copy)] { land(t, offset, copy); });
  if (t->done < t->bytes) w.at(w.now() + wire_ns(w, 0) / 4, [t] { read_piece(t); });
}

}  // namespace

bool is_one_sided(const endpoint& e) { return e.connected && !e.shared && e.owner.owner.used.card && e.peer_card; }

void read_one_sided(endpoint& e, const message& m) {
  const ucp_settings& rules = e.lib.settings;
  world& w = e.lib.the_world();
  const auto t = std::make_shared<transfer>();
  t->alive = e.lib.alive;
  t->on = &e;
  t->request = m.request;
  t->address = m.address;
  t->bytes = m.bytes_total;
  const std::uint64_t pieces = std::max<std::uint64_t>(1, rules.pieces_max);
  t->piece_bytes = std::max<std::uint64_t>(rules.piece_bytes_min, (m.bytes_total + pieces - 1) / pieces);
  t->gives_up_ns = w.now() + rules.rdma_retry_ns;
  if (nic_of(e.lib.owner).failed()) {
    kill_queue_pair(e, UCS_ERR_IO_ERROR);
    return;
  }
  w.at(w.now() + wire_ns(w, 0), [t] { read_piece(t); });
}

void flush_failed_device(library& lib) {
  // Endpoints without work are not told: the library logs the event and fails none (F22).
  for (worker* const w : lib.workers) {
    for (endpoint* const e : w->endpoints) {
      const bool works = std::ranges::any_of(w->outstanding, [e](const auto& each) {
        return each.second->on == e && each.second->what == request_kind::get;
      });
      if (works && is_one_sided(*e)) kill_queue_pair(*e, UCS_ERR_IO_ERROR);
      e->queue_pair_dead = e->queue_pair_dead || is_one_sided(*e);
    }
  }
}

}  // namespace holdfast::sim::ucp_double
