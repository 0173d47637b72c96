// The lifecycle of a connection, after the table of spec/transport 4.4.
//
// Beside the page's rows: of two connections to one peer the one that is not canonical drains at once (7.5), a revoked
// one closes (7.20), and a protocol violation before the hello is answered like a refused hello. A violation by a peer
// that serves is a loss with that reason. Whatever is left when the worker is destroyed is over with it.

#include <models/machine.hpp>

namespace holdfast::models {

namespace {

namespace mpl = boost::mpl;
using boost::msm::front::none;

HOLDFAST_MODEL_EVENT(connected, "connect");
HOLDFAST_MODEL_EVENT(greeting_began, "hello sent, or request accepted");
HOLDFAST_MODEL_EVENT(drained, "close, or not canonical");
HOLDFAST_MODEL_EVENT(lost, "peer lost");
HOLDFAST_MODEL_EVENT(force_began, "end by force");
HOLDFAST_MODEL_EVENT(attempt_failed, "attempt failed");
HOLDFAST_MODEL_EVENT(died, "worker destroyed");
struct became_ready {
  static constexpr std::string_view name = "ready";
  bool greeted;
};
struct ended {
  static constexpr std::string_view name = "ended";
  bool idle;
};

HOLDFAST_MODEL_STATE(is_new, "New");
HOLDFAST_MODEL_STATE(connecting, "Connecting");
HOLDFAST_MODEL_STATE(greeting, "Greeting");
HOLDFAST_MODEL_STATE(ready, "Ready");
HOLDFAST_MODEL_STATE(draining, "Draining");
HOLDFAST_MODEL_STATE(is_lost, "Lost");
HOLDFAST_MODEL_STATE(closing, "Closing");
HOLDFAST_MODEL_STATE(failed, "Failed");
HOLDFAST_MODEL_STATE(closed, "Closed");

HOLDFAST_MODEL_GUARD(said_hello, "valid hello", event.greeted);
HOLDFAST_MODEL_GUARD(nobody_waits, "every transfer completed or orphaned", event.idle);

struct connection_machine : front_end<connection_machine> {
  using initial_state = is_new;
  // clang-format off
  struct transition_table
      : mpl::vector<
            row<is_new, connected, connecting>,
            row<is_new, greeting_began, greeting>,
            row<connecting, greeting_began, greeting>,
            row<connecting, attempt_failed, failed>,
            row<connecting, force_began, closing>,
            row<greeting, became_ready, ready, said_hello>,
            row<greeting, drained, draining>,
            row<greeting, force_began, closing>,
            row<greeting, attempt_failed, failed>,
            row<ready, drained, draining>,
            row<ready, lost, is_lost>,
            row<ready, force_began, closing>,
            row<draining, lost, is_lost>,
            row<draining, force_began, closing>,
            row<draining, ended, closed, nobody_waits>,
            row<is_lost, ended, closed, nobody_waits>,
            row<closing, ended, closed, nobody_waits>,
            row<failed, ended, closed, nobody_waits>,
            row<draining, died, closed>,
            row<is_lost, died, closed>,
            row<closing, died, closed>,
            row<failed, died, closed>> {};
  // clang-format on
};

class connection_model final : public lifecycle<connection_machine, is_new> {
 public:
  connection_model()
      : lifecycle(
            "connection", "spec/transport 4.4",
            "a connection is ready after a valid hello, serves until it is closed or lost, and ends when nobody waits "
            "for its transfers",
            {event_id::connection_state, event_id::hello_accepted, event_id::transport_state,
             event_id::worker_destroyed, event_id::operation_accepted, event_id::operation_submitted,
             event_id::operation_orphaned, event_id::operation_ended}) {}

 private:
  // In the order of connection_state in telemetry/events.def.
  enum state : std::uint64_t {
    at_connecting,
    at_greeting,
    at_ready,
    at_draining,
    at_lost,
    at_closing,
    at_closed,
    at_failed
  };

  void see(sim::world& w, const sim::logged_event& e, event_id kind) override {
    const std::uint64_t* const f = e.fields;
    host_connections& h = of(e.host);
    switch (kind) {
      case event_id::transport_state:
        if (f[1] == 0) h.forget();
        break;
      case event_id::worker_destroyed: h.worker_gone = true; break;
      case event_id::hello_accepted: h.known[f[0]].greeted = true; break;
      case event_id::operation_accepted:
        if (f[4] == 0) h.transfers[f[0]].connection = 0;
        break;
      case event_id::operation_submitted:
        if (transfer* const t = h.transfers.find(f[0])) {
          t->connection = f[1];
          ++h.known[f[1]].waited_for;
        }
        break;
      case event_id::operation_orphaned:
      case event_id::operation_ended:
        if (transfer* const t = h.transfers.find(f[0]); t != nullptr && t->connection != 0) {
          --h.known[t->connection].waited_for;
          t->connection = 0;
        }
        break;
      default: moved(w, e, h); break;
    }
  }

  struct one {
    bool greeted = false;
    std::int64_t waited_for = 0;
  };
  struct transfer {
    std::uint64_t connection = 0;  // while somebody waits for it
  };
  struct host_connections {
    invariants::id_table<one> known;
    invariants::id_table<transfer> transfers;
    bool worker_gone = false;
    void forget() {
      known.forget();
      transfers.forget();
      worker_gone = false;
    }
  };

  void moved(sim::world& w, const sim::logged_event& e, host_connections& h) {
    const std::uint64_t id = e.fields[0];
    // Numbers begin anew with every transport.
    if (e.fields[3] == at_connecting || (e.fields[3] == at_greeting && h.known.find(id) == nullptr)) {
      born(e, id);
      h.known[id] = one{};
    }
    const one& c = h.known[id];
    switch (e.fields[3]) {
      case at_connecting: happened(w, e, id, connected{}); break;
      case at_greeting: happened(w, e, id, greeting_began{}); break;
      case at_ready: happened(w, e, id, became_ready{c.greeted}); break;
      case at_draining: happened(w, e, id, drained{}); break;
      case at_lost: happened(w, e, id, lost{}); break;
      case at_closing: happened(w, e, id, force_began{}); break;
      case at_failed: happened(w, e, id, attempt_failed{}); break;
      case at_closed:
        if (h.worker_gone)
          happened(w, e, id, died{});
        else
          happened(w, e, id, ended{c.waited_for == 0});
        break;
      default: break;
    }
  }

  void forget_all() override {
    for (host_connections& h : hosts_) h.forget();
  }
  void forget_host(std::uint16_t host) override { of(host).forget(); }
  host_connections& of(std::uint16_t host) {
    if (hosts_.size() <= host) hosts_.resize(std::size_t{host} + 1);
    return hosts_[host];
  }
  std::vector<host_connections> hosts_;
};

}  // namespace

model& connection_lifecycle() {
  static connection_model one;
  return one;
}

}  // namespace holdfast::models
