#include <sim/hardware/fabric.hpp>

#include <sim/faults/fault_plan.hpp>

#include <algorithm>
#include <cerrno>

namespace holdfast::sim {

namespace {
constexpr side other(side s) noexcept { return s == side::client ? side::server : side::client; }
constexpr unsigned index(side s) noexcept { return static_cast<unsigned>(s); }
constexpr std::uint32_t network = 0x0a000000;  // 10.0.0.0
constexpr std::uint32_t loopback = 127;
}  // namespace

fabric& fabric::of(world& w) {
  static const char key = 0;
  kernel_scope scope;
  return w.attachment<fabric>(&key, [&w] { return std::make_shared<fabric>(w); });
}

fabric::fabric(world& w) : world_(w), chance_(w.stream("fabric")), faults_(fault_plan::of(w)) {}

std::uint32_t fabric::address_of(const host& h) noexcept { return network + h.index() + 1u; }

std::uint32_t fabric::machine_of(const host& h) const noexcept {
  const auto placed = machines_.find(h.index());
  return placed == machines_.end() ? h.index() + 1u : placed->second;
}

void fabric::place(const host& h, std::uint32_t machine) {
  kernel_scope scope;
  machines_[h.index()] = machine;
}

host* fabric::host_at(host& from, std::uint32_t address) noexcept {
  if (address >> 24 == loopback) return &from;
  const std::uint32_t number = address - network - 1;
  return number < world_.hosts().size() ? world_.hosts()[number].get() : nullptr;
}

std::string fabric::text_of(std::uint32_t address, std::uint16_t port) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    text += std::to_string((address >> shift) & 255);
    text += shift == 0 ? ':' : '.';
  }
  return text + std::to_string(port);
}

fabric::host_record& fabric::record(host& h) {
  host_record& r = hosts_[h.index()];
  if (r.watched_life != h.life()) {
    r.watched_life = h.life();
    h.on_crash([this, &h] { host_crashed(h); });
  }
  return r;
}

std::expected<std::uint16_t, int> fabric::listen(host& h, std::uint16_t port, acceptor& who) {
  host_record& r = record(h);
  if (port == 0) {
    while (r.listening.contains(r.next_port)) ++r.next_port;
    port = r.next_port++;
  } else if (r.listening.contains(port)) {
    return std::unexpected(EADDRINUSE);
  }
  r.listening.emplace(port, &who);
  return port;
}

void fabric::stop_listening(host& h, std::uint16_t port) { record(h).listening.erase(port); }

std::shared_ptr<stream> fabric::connect(host& from, stream_end& end, std::uint32_t address, std::uint16_t port,
                                        std::unique_ptr<packet> first, std::size_t bytes) {
  auto s = std::make_shared<stream>();
  s->number = next_stream_++;
  s->hosts_[0] = &from;
  s->ends_[0] = &end;
  remember(from, s);
  host* const to = host_at(from, address);
  if (to == nullptr) {
    // An address without a machine: nobody answers.
    world_.at(world_.now() + settings.retransmission_ns,
              [this, s] { break_at(s, side::client, break_reason::timed_out); });
    return s;
  }
  s->hosts_[1] = to;
  if (to != &from) remember(*to, s);
  const std::int64_t extra_ns = disturb(s, side::client);
  transmit({parcel_kind::connect, s, side::server, std::move(first), bytes, port, break_reason::reset}, extra_ns);
  return s;
}

std::shared_ptr<stream> fabric::connect_shared(host& from, stream_end& end, host& to, std::uint16_t port,
                                               std::unique_ptr<packet> first, std::size_t bytes) {
  auto s = std::make_shared<stream>();
  s->number = next_stream_++;
  s->shared_ = true;
  s->hosts_[0] = &from;
  s->hosts_[1] = &to;
  s->ends_[0] = &end;
  remember(from, s);
  if (&to != &from) remember(to, s);
  transmit({parcel_kind::connect, s, side::server, std::move(first), bytes, port, break_reason::reset});
  return s;
}

void fabric::remember(host& h, const std::shared_ptr<stream>& s) {
  host_record& r = record(h);
  std::erase_if(r.streams, [](const auto& each) { return each.expired(); });
  r.streams.push_back(s);
}

void fabric::attach(const std::shared_ptr<stream>& s, side where, stream_end& end) {
  s->ends_[index(where)] = &end;
  if (!s->broken_[index(where)]) return;
  world_.at(world_.now(), [s, where] {
    if (stream_end* const e = std::exchange(s->ends_[index(where)], nullptr)) e->broken(s->why_[index(where)]);
  });
}

std::int64_t fabric::disturb(const std::shared_ptr<stream>& s, side from) {
  host* const sender = s->hosts_[index(from)];
  host* const receiver = s->hosts_[index(other(from))];
  fault_plan& plan = faults_;
  std::int64_t extra_ns = 0;
  if (const fault* const f = plan.strike(*sender, "fabric.delay"); f != nullptr) {
    extra_ns = f->what == "loss" ? settings.retransmission_ns : f->value;
  }
  if (const fault* const f = plan.strike(*sender, "fabric.partition"); f != nullptr && sender != receiver) {
    partition(*sender, *receiver, f->what == "one_way");
    if (f->value > 0) world_.at(world_.now() + f->value, [this, sender, receiver] { heal(*sender, *receiver); });
  }
  if (const fault* const f = plan.strike(*sender, "fabric.slow"); f != nullptr && sender != receiver)
    between(*sender, *receiver).extra_ns = f->value;
  if (plan.strike(*sender, "fabric.reset") != nullptr) {
    for (const side where : {side::client, side::server}) {
      world_.at(world_.now() + settings.detection_low_ns,
                [this, s, where] { break_at(s, where, break_reason::reset); });
    }
  }
  return extra_ns;
}

void fabric::send(const std::shared_ptr<stream>& s, side from, std::unique_ptr<packet> what, std::size_t bytes) {
  if (s->closed_[index(from)] || s->broken_[index(from)] || s->hosts_[index(other(from))] == nullptr) return;
  const std::int64_t extra_ns = s->shared_ ? 0 : disturb(s, from);
  transmit({parcel_kind::data, s, other(from), std::move(what), bytes, 0, break_reason::reset}, extra_ns);
}

void fabric::close(const std::shared_ptr<stream>& s, side from, bool quietly) {
  if (std::exchange(s->closed_[index(from)], true)) return;
  s->ends_[index(from)] = nullptr;
  if (quietly || s->shared_ || s->broken_[index(from)] || s->hosts_[index(other(from))] == nullptr) return;
  transmit({parcel_kind::broke, s, other(from), nullptr, 64, 0, break_reason::reset});
}

void fabric::transmit(parcel p, std::int64_t extra_ns) {
  const host& from = *p.where->hosts_[index(other(p.to))];
  const host& to = *p.where->hosts_[index(p.to)];
  if (p.where->shared_) {
    const auto copy_ns =
        static_cast<std::int64_t>(p.bytes) * 1000 / std::max<std::int64_t>(1, settings.shared_bytes_per_us);
    schedule(std::move(p), world_.now() + settings.shared_latency_ns + copy_ns);
    return;
  }
  link& l = between(from, to);
  const std::int64_t now = world_.now();
  const auto wire_ns = static_cast<std::int64_t>(p.bytes) * 1000 / std::max<std::int64_t>(1, settings.bytes_per_us);
  // Links are queues: what is sent later leaves later, whatever stream it belongs to.
  l.busy_until = std::max(now, l.busy_until) + wire_ns;
  std::int64_t arrival = l.busy_until + l.extra_ns + extra_ns;
  if (machine_of(from) == machine_of(to)) {
    arrival += settings.loopback_latency_ns;
  } else {
    arrival += settings.latency_ns;
    if (settings.jitter_ns > 0) {
      arrival += static_cast<std::int64_t>(chance_.below(static_cast<std::uint64_t>(settings.jitter_ns) + 1));
    }
  }
  schedule(std::move(p), arrival);
}

void fabric::schedule(parcel p, std::int64_t time_ns) {
  std::int64_t& last = p.where->last_arrival_[index(p.to)];
  last = std::max(last, time_ns);
  world_.at(last, [this, p = std::move(p)]() mutable { arrive(std::move(p)); });
}

void fabric::arrive(parcel p) {
  const unsigned to = index(p.to);
  stream& s = *p.where;
  link& l = between(*s.hosts_[index(other(p.to))], *s.hosts_[to]);
  if (l.cut && !s.shared_) {
    l.waiting.push_back(std::move(p));
    return;
  }
  switch (p.kind) {
    case parcel_kind::connect: {
      host_record& r = record(*s.hosts_[to]);
      const auto listener = s.hosts_[to]->alive() ? r.listening.find(p.port) : r.listening.end();
      if (listener == r.listening.end()) {
        s.closed_[to] = true;
        if (s.shared_) return;
        transmit({parcel_kind::broke, p.where, other(p.to), nullptr, 64, 0, break_reason::refused});
        return;
      }
      listener->second->connected(p.where, std::move(p.what));
      return;
    }
    case parcel_kind::data:
      if (s.ends_[to] != nullptr && !s.broken_[to]) s.ends_[to]->arrived(std::move(p.what));
      return;
    case parcel_kind::broke: break_at(p.where, p.to, p.why); return;
  }
}

void fabric::break_at(const std::shared_ptr<stream>& s, side where, break_reason why) {
  const unsigned at = index(where);
  if (s->closed_[at] || std::exchange(s->broken_[at], true)) return;
  s->why_[at] = why;
  if (stream_end* const e = std::exchange(s->ends_[at], nullptr)) e->broken(why);
}

void fabric::cut(host& from, host& to) {
  link& l = between(from, to);
  if (std::exchange(l.cut, true)) return;
  const std::uint32_t which = ++l.cuts;
  world_.at(world_.now() + settings.keepalive_ns, [this, &from, &to, which] {
    link& still = between(from, to);
    if (!still.cut || still.cuts != which) return;
    // A copy: whoever learns of a break may open and close other streams.
    const auto streams = record(from).streams;
    for (const auto& each : streams) {
      const auto s = each.lock();
      if (!s || s->shared_ || s->hosts_[0] == nullptr || s->hosts_[1] == nullptr) continue;
      if ((s->hosts_[0] == &from && s->hosts_[1] == &to) || (s->hosts_[0] == &to && s->hosts_[1] == &from)) {
        break_at(s, side::client, break_reason::timed_out);
        break_at(s, side::server, break_reason::timed_out);
      }
    }
  });
}

void fabric::mend(host& from, host& to) {
  link& l = between(from, to);
  if (!std::exchange(l.cut, false)) return;
  std::vector<parcel> waiting = std::move(l.waiting);
  l.waiting.clear();
  for (parcel& p : waiting) schedule(std::move(p), world_.now() + settings.latency_ns);
}

bool fabric::has_way(const host& from, const host& to) const noexcept {
  const auto found = links_.find({from.index(), to.index()});
  return found == links_.end() || !found->second.cut;
}

void fabric::partition(host& a, host& b, bool one_way) {
  kernel_scope scope;
  cut(a, b);
  if (!one_way) cut(b, a);
}

void fabric::heal(host& a, host& b) {
  kernel_scope scope;
  mend(a, b);
  mend(b, a);
}

void fabric::slow(host& from, host& to, std::int64_t extra_ns) {
  kernel_scope scope;
  between(from, to).extra_ns = extra_ns;
}

void fabric::host_crashed(host& h) {
  host_record& r = hosts_[h.index()];
  r.listening.clear();
  const auto streams = std::move(r.streams);
  r.streams.clear();
  for (const auto& each : streams) {
    const auto s = each.lock();
    if (!s) continue;
    for (const side where : {side::client, side::server}) {
      const unsigned at = index(where);
      if (s->hosts_[at] != &h || s->closed_[at]) continue;
      s->closed_[at] = true;
      s->ends_[at] = nullptr;
      host* const peer = s->hosts_[index(other(where))];
      if (peer == nullptr || peer == &h || s->shared_) continue;
      const auto low = static_cast<std::uint64_t>(settings.detection_low_ns);
      const auto high = static_cast<std::uint64_t>(std::max(settings.detection_low_ns, settings.detection_high_ns));
      // What the kernel had sent before still arrives, and before the news.
      schedule({parcel_kind::broke, s, other(where), nullptr, 0, 0, break_reason::reset},
               world_.now() + static_cast<std::int64_t>(chance_.between(low, high)));
    }
  }
}

}  // namespace holdfast::sim
