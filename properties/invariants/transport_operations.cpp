// Promises about operations handed to the communication library: four exits, one outcome, no early end of a hold.

#include <properties/invariants/invariant.hpp>

namespace holdfast::invariants {

namespace {

class every_record_takes_one_exit final : public invariant {
 public:
  every_record_takes_one_exit()
      : invariant("TP-I1", "every record in the operation table takes exactly one exit",
                  {kind_of(event_id::operation_ended), kind_of(event_id::operation_accepted),
                   kind_of(event_id::witness_issued), kind_of(hardware_event::driver_callback)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == hardware_event::driver_callback) {
      const request_record* const r = b.requests.find(e.fields[0]);
      const operation_record* const o = r != nullptr ? b.operations.find(r->operation) : nullptr;
      // A device without a library may have said before that it does not know.
      if (o == nullptr || b.progress_fiber == 0xffffffff) return;
      promise(w, o->ended == 0 && r->callbacks == 1, [&] {
        return named(w, e, "operation", r->operation) + " is called back " +
               (o->ended != 0 ? "after it had taken an exit" : "a second time");
      });
      return;
    }
    if (e.kind == event_id::witness_issued) {
      for (std::size_t i = 0; i < b.operations.size(); ++i) {
        const operation_record& o = b.operations.at(i);
        if (o.accepted == 0) continue;
        promise(w, o.ended == 1, [&] {
          return named(w, e, "operation", b.operations.id_at(i)) + " is still in the table after the teardown";
        });
      }
      return;
    }
    const operation_record& o = *b.operations.find(e.fields[0]);
    if (e.kind == event_id::operation_accepted)
      promise(w, o.accepted == 1, [&] { return named(w, e, "operation", e.fields[0]) + " was accepted twice"; });
    else
      promise(w, o.accepted == 1 && o.ended == 1, [&] {
        return named(w, e, "operation", e.fields[0]) +
               (o.accepted == 0 ? " ended without having been accepted" : " took a second exit");
      });
  }
  // What nobody took out of the queue any more.
  void judge_when_stuck(world& w, std::uint16_t host, host_books& b) override {
    if (b.transport != transport_state::gone && b.transport != transport_state::swept &&
        b.transport != transport_state::hung)
      return;
    promise(w, b.calls_open == 0, [&] {
      return "a program of host " + std::string(host_name(w, host)) + " waits for " + std::to_string(b.calls_open) +
             " calls of a transport that has ended";
    });
    for (std::size_t i = 0; i < b.operations.size(); ++i) {
      const operation_record& one = b.operations.at(i);
      if (one.accepted == 0 || one.submitted != 0) continue;
      promise(w, one.ended != 0, [&] {
        return "operation " + std::to_string(b.operations.id_at(i)) + " of host " + std::string(host_name(w, host)) +
               " was never handed over, and its transport has ended";
      });
    }
  }
};

class a_waiter_is_told_once final : public invariant {
 public:
  a_waiter_is_told_once()
      : invariant("TP-I2", "a waiter is told an outcome at most once, and ok only if its bytes are there",
                  {kind_of(event_id::waiter_told)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const operation_record& o = *b.operations.find(e.fields[0]);
    promise(w, o.told == 1,
            [&] { return "the waiter of " + named(w, e, "operation", e.fields[0]) + " was told twice"; });
    if (o.kind != operation_kind::get || e.fields[1] == 0) return;
    const request_record* const r = b.requests.find(o.request);
    promise(w, r == nullptr || !r->open, [&] {
      return "the waiter of " + named(w, e, "operation", e.fields[0]) + " was told success before it completed";
    });
  }
};

class no_hold_is_dropped_early final : public invariant {
 public:
  no_hold_is_dropped_early()
      : invariant("TP-I3", "no hold is dropped while its operation is posted or orphaned and the worker exists",
                  {kind_of(event_id::operation_ended), kind_of(event_id::hold_dropped)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::operation_ended) {
      const request_record* const r = b.requests.find(b.operations.find(e.fields[0])->request);
      if (r == nullptr || b.workers_open == 0) return;
      promise(w, !r->open,
              [&] { return named(w, e, "operation", e.fields[0]) + " ended while the library still has it"; });
      return;
    }
    const span_record& s = *b.spans.find(e.fields[0]);
    const operation_record* const o = b.operations.find(s.operation);
    const request_record* const r = o != nullptr ? b.requests.find(o->request) : nullptr;
    if (r == nullptr) return;
    // An end of unknown fate leaves the granules in quarantine instead.
    promise(w, !r->open || (s.quarantined && o->ended != 0), [&] {
      return "the hold on " + named(w, e, "span", e.fields[0]) + " was dropped while request " +
             std::to_string(o->request) + " is in the library";
    });
  }
};

class the_sweep_follows_destruction final : public invariant {
 public:
  the_sweep_follows_destruction()
      : invariant("TP-I4", "the sweep runs only after the worker's destruction returned; after it no callback arrives",
                  {kind_of(event_id::table_swept), kind_of(event_id::operation_ended),
                   kind_of(hardware_event::driver_callback)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == hardware_event::driver_callback) {
      const request_record* const r = b.requests.find(e.fields[0]);
      if (r != nullptr && r->swept)
        promise(w, false,
                [&] { return named(w, e, "request", e.fields[0]) + " was called back after its worker ended"; });
      return;
    }
    if (e.kind == event_id::operation_ended && e.fields[1] != operation_exit::swept) return;
    promise(w, b.workers_gone(), [&] {
      return e.kind == event_id::table_swept ? "the operation table of host " + std::string(host_name(w, e.host)) +
                                                   " was swept before its worker's destruction returned"
                                             : named(w, e, "operation", e.fields[0]) +
                                                   " was ended by the sweep before the worker's destruction returned";
    });
  }
};

class sizes_of_peers_are_bounded final : public invariant {
 public:
  sizes_of_peers_are_bounded()
      : invariant("TP-I14", "no copy larger than the limit is made of bytes that a peer sent",
                  {kind_of(event_id::message_copied)}) {}
  void judge(world& w, const logged_event& e, host_books&) override {
    promise(w, e.fields[1] <= e.fields[2], [&] {
      return named(w, e, "connection", e.fields[0]) + " copied " + std::to_string(e.fields[1]) +
             " bytes of its peer; the limit is " + std::to_string(e.fields[2]);
    });
  }
};

}  // namespace

void add_transport_operations(invariant_list& list) {
  list.push_back(std::make_unique<every_record_takes_one_exit>());
  list.push_back(std::make_unique<a_waiter_is_told_once>());
  list.push_back(std::make_unique<no_hold_is_dropped_early>());
  list.push_back(std::make_unique<the_sweep_follows_destruction>());
  list.push_back(std::make_unique<sizes_of_peers_are_bounded>());
}

}  // namespace holdfast::invariants
