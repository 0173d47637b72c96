// Promises about connections, endpoints and keys: who the peer is, and what may not be used any more.

#include <properties/invariants/invariant.hpp>
#include <properties/invariants/looks.hpp>

#include <sim/drivers/ucp_double.hpp>

namespace holdfast::invariants {

namespace {

class nothing_is_used_after_its_end final : public invariant {
 public:
  nothing_is_used_after_its_end()
      : invariant("TP-I6",
                  "no call on a closed endpoint or a destroyed key; no key is destroyed under an operation, "
                  "every key goes before its worker",
                  {kind_of(event_id::endpoint_state), kind_of(event_id::operation_submitted),
                   kind_of(event_id::key_used), kind_of(event_id::key_state), kind_of(event_id::worker_destroyed),
                   kind_of(hardware_event::driver_call)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == hardware_event::driver_call) {
      judge_call(w, e, b);
    } else if (e.kind == event_id::endpoint_state) {
      const endpoint_record& p = *b.endpoints.find(e.fields[0]);
      const bool closes = p.state == endpoint_state::flushing || p.state == endpoint_state::forced;
      const bool revived = p.before == endpoint_state::destroyed ||
                           (p.state == endpoint_state::open && p.before != endpoint_state::unseen &&
                            (p.before != endpoint_state::parked || p.lane != endpoint_lane::data)) ||
                           (closes && (p.before == endpoint_state::forced || p.before == endpoint_state::flushing ||
                                       p.before == endpoint_state::parked));
      promise(w, !revived, [&] { return named(w, e, "endpoint", e.fields[0]) + " was used after it was closed"; });
      if (p.state != endpoint_state::flushing && p.state != endpoint_state::forced) return;
      for (std::size_t i = 0; i < b.keys.size(); ++i) {
        const key_record& k = b.keys.at(i);
        if (k.connection != e.fields[1]) continue;
        promise(w, k.destroyed != 0 || k.in_use != 0, [&] {
          return named(w, e, "key", b.keys.id_at(i)) + " is idle and outlives its endpoint " +
                 std::to_string(e.fields[0]);
        });
      }
    } else if (e.kind == event_id::operation_submitted) {
      const operation_record& o = *b.operations.find(e.fields[0]);
      if (o.kind == operation_kind::close) return;
      bool seen = false, usable = false;
      for (std::size_t i = 0; i < b.endpoints.size(); ++i) {
        const endpoint_record& p = b.endpoints.at(i);
        if (p.connection != e.fields[1]) continue;
        seen = true;
        usable = usable || p.state == endpoint_state::open || p.state == endpoint_state::failed;
      }
      if (!seen) return;
      promise(w, usable, [&] {
        return named(w, e, "operation", e.fields[0]) + " was handed to a closed endpoint of connection " +
               std::to_string(e.fields[1]);
      });
    } else if (e.kind == event_id::key_used) {
      promise(w, !b.keys.find(e.fields[0])->after_end,
              [&] { return named(w, e, "key", e.fields[0]) + " was used after its destruction"; });
    } else if (e.kind == event_id::key_state) {
      if (e.fields[3] != key_state::destroyed) return;
      const key_record& k = *b.keys.find(e.fields[0]);
      promise(w, k.destroyed == 1 && k.in_use_at_the_end == 0 && !b.workers_gone(), [&] {
        return named(w, e, "key", e.fields[0]) + (k.destroyed != 1           ? " was destroyed twice"
                                                  : k.in_use_at_the_end != 0 ? " was destroyed under an operation"
                                                                             : " was destroyed after its worker");
      });
    } else {
      for (std::size_t i = 0; i < b.keys.size(); ++i) {
        const key_record& k = b.keys.at(i);
        // A key whose operation never ended is left to the worker's destruction.
        if (k.in_use != 0) continue;
        promise(w, k.destroyed == 1, [&] { return named(w, e, "key", b.keys.id_at(i)) + " outlived its worker"; });
      }
    }
  }

 private:
  void judge_call(world& w, const logged_event& e, host_books& b) {
    using sim::ucp_double::function;
    const auto what = static_cast<function>(e.fields[0]);
    const bool closes = what == function::ucp_ep_close_nbx;
    if (!closes && what != function::ucp_get_nbx && what != function::ucp_am_send_nbx &&
        what != function::ucp_ep_rkey_unpack)
      return;
    const lane_record* const lane = b.lanes.find(e.fields[1]);
    promise(w, lane == nullptr || lane->closes <= (closes ? 1u : 0u), [&] {
      return std::string(sim::ucp_double::name_of(what)) + " was called on " +
             named(w, e, "the library's endpoint", e.fields[1]) + " after its close";
    });
  }
};

class nothing_before_the_hello final : public invariant {
 public:
  nothing_before_the_hello()
      : invariant("TP-I9", "nothing but its hello is processed of a peer before the hello was accepted",
                  {kind_of(event_id::connection_state), kind_of(event_id::operation_submitted)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::connection_state) {
      if (e.fields[3] != connection_state::ready) return;
      promise(w, b.connections.find(e.fields[0])->greeted != 0,
              [&] { return named(w, e, "connection", e.fields[0]) + " is ready without a hello"; });
      return;
    }
    const operation_record& o = *b.operations.find(e.fields[0]);
    if (o.kind != operation_kind::get) return;
    const connection_record* const c = b.connections.find(e.fields[1]);
    if (c == nullptr) return;
    promise(w, c->greeted != 0, [&] {
      return named(w, e, "operation", e.fields[0]) + " went to connection " + std::to_string(e.fields[1]) +
             " before its hello";
    });
  }
};

class only_the_greeted_incarnation final : public invariant {
 public:
  only_the_greeted_incarnation()
      : invariant("TP-I10", "no operation acts on an incarnation other than the one that its connection greeted",
                  {kind_of(event_id::operation_submitted)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const operation_record& o = *b.operations.find(e.fields[0]);
    if (o.kind != operation_kind::get) return;
    const connection_record* const c = b.connections.find(e.fields[1]);
    if (c == nullptr || c->greeted == 0) return;
    promise(w, c->worker_id == o.worker_id && c->incarnation == o.incarnation, [&] {
      return named(w, e, "operation", e.fields[0]) + " is for incarnation " + std::to_string(o.incarnation) +
             " and went to incarnation " + std::to_string(c->incarnation);
    });
  }
};

class one_ready_connection_of_a_peer final : public invariant {
 public:
  one_ready_connection_of_a_peer()
      : invariant("TP-I11", "at most one ready connection for a worker id, and incarnations never go back",
                  {kind_of(event_id::connection_state)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.fields[3] != connection_state::ready) return;
    const connection_record& c = *b.connections.find(e.fields[0]);
    for (std::size_t i = 0; i < b.connections.size(); ++i) {
      const connection_record& other = b.connections.at(i);
      if (b.connections.id_at(i) == e.fields[0] || other.worker_id != c.worker_id) continue;
      promise(w, other.state != connection_state::ready, [&] {
        return named(w, e, "connection", e.fields[0]) + " is ready beside connection " +
               std::to_string(b.connections.id_at(i)) + " to the same peer";
      });
    }
    std::uint64_t& newest = b.newest_incarnation[c.worker_id];
    if (newest != 0 && newest != c.incarnation) b.replaced_incarnation[newest] = c.worker_id;
    newest = c.incarnation;
    promise(w, b.replaced_incarnation.find(c.incarnation) == nullptr, [&] {
      return named(w, e, "connection", e.fields[0]) + " is ready with incarnation " + std::to_string(c.incarnation) +
             ", which had been replaced";
    });
  }
  void look(world& w, std::uint16_t host, bool connected) {
    ++evaluated;
    promise(w, connected, [&] {
      return "host " + std::string(host_name(w, host)) +
             " met its peer, nothing parted them, and yet it has no connection for a GET";
    });
  }
};

one_ready_connection_of_a_peer* the_meeting = nullptr;

class nothing_is_submitted_after_the_loss final : public invariant {
 public:
  nothing_is_submitted_after_the_loss()
      : invariant("TP-I12", "no operation is submitted on a connection that is lost or closing",
                  {kind_of(event_id::operation_submitted)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const operation_record& o = *b.operations.find(e.fields[0]);
    if (o.kind != operation_kind::get) return;
    const connection_record* const c = b.connections.find(e.fields[1]);
    if (c == nullptr) return;
    promise(w, c->state < connection_state::lost || c->state == connection_state::unseen, [&] {
      return named(w, e, "operation", e.fields[0]) + " was submitted on connection " + std::to_string(e.fields[1]) +
             " after its end";
    });
  }
};

class a_loss_is_told_once final : public invariant {
 public:
  a_loss_is_told_once()
      : invariant(
            "TP-I19",
            "error handler and loss event: once for a connection, and not of a peer whose other connection is known",
            {kind_of(event_id::transport_failed), kind_of(event_id::peer_lost), kind_of(event_id::endpoint_state),
             kind_of(event_id::connection_state)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::transport_failed) {
      promise(w, b.failures == 1, [&] {
        return "the failure of the transport of " + named(w, e, "epoch", e.fields[0]) + " was told twice";
      });
    } else if (e.kind == event_id::peer_lost) {
      promise(w, b.connections.find(e.fields[2])->reported == 1,
              [&] { return "the loss of " + named(w, e, "connection", e.fields[2]) + " was reported twice"; });
      if (e.fields[4] != 0) return;
      // Lost by an error: so the library said, and silence is none.
      bool failed = false;
      for (std::size_t i = 0; i < b.endpoints.size(); ++i) {
        const endpoint_record& p = b.endpoints.at(i);
        failed = failed || (p.connection == e.fields[2] && p.failed != 0);
      }
      promise(w, failed, [&] {
        return named(w, e, "connection", e.fields[2]) + " was given up, and the library had reported no error on it";
      });
    } else if (e.kind == event_id::endpoint_state) {
      const endpoint_record& p = *b.endpoints.find(e.fields[0]);
      if (e.fields[2] != endpoint_state::failed) return;
      promise(w, p.failed == 1, [&] { return named(w, e, "endpoint", e.fields[0]) + " failed twice"; });
    } else if (e.fields[3] == connection_state::ready) {
      judge_other(w, e, b);
    } else {
      if (e.fields[3] != connection_state::lost) return;
      promise(w, b.connections.find(e.fields[0])->lost == 1,
              [&] { return named(w, e, "connection", e.fields[0]) + " was lost twice"; });
    }
  }

 private:
  // What it takes for this one to be ready had come before the other was given up.
  void judge_other(world& w, const logged_event& e, host_books& b) {
    const connection_record& now = *b.connections.find(e.fields[0]);
    for (std::size_t i = 0; i < b.connections.size(); ++i) {
      const connection_record& other = b.connections.at(i);
      if (other.worker_id != now.worker_id || other.incarnation != now.incarnation || other.lost_at_call == none)
        continue;
      promise(w, other.lost_at_call != b.progress_calls, [&] {
        return "the peer of " + named(w, e, "connection", e.fields[0]) + " was reported lost with connection " +
               std::to_string(b.connections.id_at(i)) + ", and nothing had to come for this one to serve";
      });
    }
  }
};

class nobody_waits_for_what_is_over final : public invariant {
 public:
  nobody_waits_for_what_is_over()
      : invariant("TP-I18", "whoever waits for a connection, or for a transfer over it, is told when it ends",
                  {kind_of(event_id::endpoint_state), kind_of(event_id::connection_state)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::connection_state) {
      judge_attempt(w, e, b);
      if (e.fields[3] != connection_state::closed) return;
      each_waiting(b, e.fields[0], [&](std::uint64_t id, const operation_record& o) {
        promise(w, o.orphaned != 0 || b.workers_destroyed != 0, [&] {
          return named(w, e, "operation", id) + " waits for connection " + std::to_string(e.fields[0]) +
                 ", which is closed";
        });
      });
      return;
    }
    const endpoint_record& p = *b.endpoints.find(e.fields[0]);
    if (p.lane == endpoint_lane::control) {
      // Whatever ends the control connection reaches the transfers through shared memory too.
      if (p.state != endpoint_state::forced && p.state != endpoint_state::flushing) return;
      for (std::size_t i = 0; i < b.endpoints.size(); ++i) {
        const endpoint_record& data = b.endpoints.at(i);
        if (data.connection != p.connection || data.lane != endpoint_lane::data) continue;
        promise(w, data.state != endpoint_state::open && data.state != endpoint_state::failed, [&] {
          return "the control endpoint of " + named(w, e, "connection", p.connection) +
                 " is closed, and its endpoint through shared memory goes on";
        });
      }
    } else if (p.state == endpoint_state::parked) {
      each_waiting(b, p.connection, [&](std::uint64_t id, const operation_record& o) {
        const request_record* const r = b.requests.find(o.request);
        if (r == nullptr || !r->shared) return;
        promise(w, o.orphaned == 1, [&] {
          return "nothing will be heard of " + named(w, e, "operation", id) + ", and it is not counted as orphaned";
        });
      });
    }
  }
  void judge_at_rest(world& w, std::uint16_t host, host_books& b) override {
    if (b.hung != 0) return;
    for (std::size_t i = 0; i < b.connections.size(); ++i) {
      const connection_record& c = b.connections.at(i);
      promise(w, c.state != connection_state::connecting && c.state != connection_state::greeting, [&] {
        return "the attempt of connection " + std::to_string(b.connections.id_at(i)) + " of host " +
               std::string(host_name(w, host)) + " never ended";
      });
    }
    for (std::size_t i = 0; i < b.operations.size(); ++i) {
      const operation_record& o = b.operations.at(i);
      // The start-up's own transfers have no span, and their waiter is the start-up.
      if (o.orphaned == 0 || o.span == none) continue;
      promise(w, o.told != 0 || o.abandoned != 0, [&] {
        return "the waiter of operation " + std::to_string(b.operations.id_at(i)) + " of host " +
               std::string(host_name(w, host)) + " was not told that its peer is gone";
      });
    }
  }
  void judge_when_stuck(world& w, std::uint16_t host, host_books& b) override {
    judge_at_rest(w, host, b);
    for (std::size_t i = 0; i < b.connections.size(); ++i) {
      const connection_record& c = b.connections.at(i);
      if (c.state != connection_state::lost && c.state != connection_state::closing &&
          c.state != connection_state::closed)
        continue;
      each_waiting(b, b.connections.id_at(i), [&](std::uint64_t id, const operation_record& o) {
        promise(w, o.orphaned != 0 || o.told != 0, [&] {
          return "operation " + std::to_string(id) + " of host " + std::string(host_name(w, host)) +
                 " waits for connection " + std::to_string(b.connections.id_at(i)) + ", which is over";
        });
      });
    }
  }

 private:
  // Whoever asked for it waits as long as the attempt lasts.
  void judge_attempt(world& w, const logged_event& e, host_books& b) {
    const connection_record& c = *b.connections.find(e.fields[0]);
    const bool attempted = c.before == connection_state::connecting || c.before == connection_state::greeting;
    const bool attempts = c.state == connection_state::connecting || c.state == connection_state::greeting;
    if (!attempted || attempts || b.connect_timeout_ns == 0) return;
    const std::int64_t took_ns = elapsed_ns(w, e, c.began);
    promise(w, took_ns <= b.connect_timeout_ns + iteration_ns_max, [&] {
      return "the attempt of " + named(w, e, "connection", e.fields[0]) + " lasted " + std::to_string(took_ns) +
             " ns of " + std::to_string(b.connect_timeout_ns) + " (stalled time not counted)";
    });
  }
  // The deadline is known once the endpoint is made, and looked at once an iteration: the driver calls of both take time.
  static constexpr std::int64_t iteration_ns_max = 1'000'000;
  template <class Look>
  static void each_waiting(host_books& b, std::uint64_t connection, const Look& look) {
    for (const std::uint64_t request : b.open_requests) {
      const std::uint64_t id = b.requests.find(request)->operation;
      const operation_record* const o = b.operations.find(id);
      if (o != nullptr && o->connection == connection && o->kind == operation_kind::get && o->ended == 0) look(id, *o);
    }
  }
};

class revoked_is_revoked final : public invariant {
 public:
  revoked_is_revoked()
      : invariant("TP-I27", "after a revocation nothing of that peer begins through the connections that it ended",
                  {kind_of(event_id::peer_revoked)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    for (std::size_t i = 0; i < b.connections.size(); ++i) {
      const connection_record& c = b.connections.at(i);
      if (c.worker_id != e.fields[0] || c.incarnation != e.fields[1] || c.greeted == 0) continue;
      const std::uint64_t id = b.connections.id_at(i);
      promise(w, c.state != connection_state::ready && c.state != connection_state::draining,
              [&] { return named(w, e, "connection", id) + " to a revoked peer still serves"; });
      for (std::size_t k = 0; k < b.endpoints.size(); ++k) {
        const endpoint_record& p = b.endpoints.at(k);
        if (p.connection != id) continue;
        // The library drops a peer's requests for an endpoint that was closed by force, and for no other.
        const bool reads = p.lane == endpoint_lane::data ||
                           (p.state != endpoint_state::forced && p.state != endpoint_state::destroyed);
        promise(w, !reads || e.fields[4] == 0, [&] {
          return "a revocation says that reads stop, and " + named(w, e, "endpoint", b.endpoints.id_at(k)) +
                 " may still serve them";
        });
        promise(w, p.state != endpoint_state::open && p.state != endpoint_state::failed,
                [&] { return named(w, e, "endpoint", b.endpoints.id_at(k)) + " to a revoked peer is open"; });
      }
    }
  }
};

}  // namespace

void add_transport_connections(invariant_list& list) {
  list.push_back(std::make_unique<nothing_is_used_after_its_end>());
  list.push_back(std::make_unique<nothing_before_the_hello>());
  list.push_back(std::make_unique<only_the_greeted_incarnation>());
  auto meeting = std::make_unique<one_ready_connection_of_a_peer>();
  the_meeting = meeting.get();
  list.push_back(std::move(meeting));
  list.push_back(std::make_unique<nothing_is_submitted_after_the_loss>());
  list.push_back(std::make_unique<nobody_waits_for_what_is_over>());
  list.push_back(std::make_unique<a_loss_is_told_once>());
  list.push_back(std::make_unique<revoked_is_revoked>());
}

void look_at_meeting(sim::world& w, std::uint16_t host, bool connected) {
  if (the_meeting != nullptr) the_meeting->look(w, host, connected);
}

}  // namespace holdfast::invariants
