// The lifecycle of an operation, after the table of spec/transport 4.6.
//
// There is no state of waiting for a connection: a transfer needs one that is ready. `Handed` is the moment inside the
// library's call, after which the answer decides the exit.

#include <models/machine.hpp>

namespace holdfast::models {

namespace {

namespace mpl = boost::mpl;
using boost::msm::front::none;

HOLDFAST_MODEL_EVENT(accepted, "accepted");
HOLDFAST_MODEL_EVENT(handed_over, "taken by the progress thread");
HOLDFAST_MODEL_EVENT(answered_request, "the call returns a request");
HOLDFAST_MODEL_EVENT(answered_null, "the call returns null");
HOLDFAST_MODEL_EVENT(answered_error, "the call returns an error");
HOLDFAST_MODEL_EVENT(called_back, "callback");
HOLDFAST_MODEL_EVENT(refused, "refused");
HOLDFAST_MODEL_EVENT(withdrawn, "withdrawn");
HOLDFAST_MODEL_EVENT(given_up, "caller cancelled");
HOLDFAST_MODEL_EVENT(peer_gone, "peer lost");
struct swept {
  static constexpr std::string_view name = "swept";
  bool worker_gone;
};

HOLDFAST_MODEL_STATE(is_new, "New");
HOLDFAST_MODEL_STATE(queued, "Queued");
HOLDFAST_MODEL_STATE(handed, "Handed");
HOLDFAST_MODEL_STATE(posted, "Posted");
HOLDFAST_MODEL_STATE(orphaned, "Orphaned");
HOLDFAST_MODEL_STATE(ended, "Ended");

HOLDFAST_MODEL_GUARD(after_destruction, "worker destroyed", event.worker_gone);

struct operation_machine : front_end<operation_machine> {
  using initial_state = is_new;
  // clang-format off
  struct transition_table
      : mpl::vector<
            row<is_new, accepted, queued>,
            row<queued, refused, ended>,
            row<queued, withdrawn, ended>,
            row<queued, given_up, none>,
            row<queued, handed_over, handed>,
            row<handed, answered_null, ended>,
            row<handed, answered_error, ended>,
            row<handed, answered_request, posted>,
            row<handed, given_up, none>,
            row<posted, called_back, ended>,
            row<posted, given_up, none>,
            row<posted, peer_gone, orphaned>,
            row<posted, swept, ended, after_destruction>,
            row<orphaned, called_back, ended>,
            row<orphaned, given_up, none>,
            row<orphaned, swept, ended, after_destruction>,
            row<ended, given_up, none>> {};
  // clang-format on
};

class operation_model final : public lifecycle<operation_machine, is_new> {
 public:
  operation_model()
      : lifecycle("operation", "spec/transport 4.6",
                  "an operation is handed over once and takes the exit that the library's answer, its callback or the "
                  "sweep decides",
                  {event_id::operation_accepted, event_id::operation_submitted, event_id::operation_posted,
                   event_id::operation_orphaned, event_id::operation_ended, event_id::buffer_lent,
                   event_id::get_abandoned, event_id::transport_state, event_id::worker_destroyed}) {}

 private:
  // In the order of operation_ended in telemetry/events.def.
  enum exit : std::uint64_t { by_null, by_callback, by_error, by_sweep, by_refusal, by_withdrawal };

  void see(sim::world& w, const sim::logged_event& e, event_id kind) override {
    const std::uint64_t* const f = e.fields;
    host_operations& h = of(e.host);
    switch (kind) {
      case event_id::transport_state:
        if (f[1] == 0) h.forget();
        h.has_transport = true;
        break;
      case event_id::worker_destroyed: h.worker_gone = true; break;
      case event_id::operation_accepted:
        // Of a device without a transport nothing says what a library answered.
        if (!h.has_transport) break;
        born(e, f[0]);
        happened(w, e, f[0], accepted{});
        break;
      case event_id::operation_submitted: happened(w, e, f[0], handed_over{}); break;
      case event_id::operation_posted: happened(w, e, f[0], answered_request{}); break;
      case event_id::operation_orphaned: happened(w, e, f[0], peer_gone{}); break;
      case event_id::operation_ended: end(w, e, h); break;
      case event_id::buffer_lent: h.borrower[f[0]].operation = f[1]; break;
      case event_id::get_abandoned:
        if (const lent* const by = h.borrower.find(f[0])) happened(w, e, by->operation, given_up{});
        break;
      default: break;
    }
  }

  struct lent {
    std::uint64_t operation = 0;
  };
  struct host_operations {
    invariants::id_table<lent> borrower;  // of a span
    bool has_transport = false, worker_gone = false;
    void forget() {
      borrower.forget();
      has_transport = worker_gone = false;
    }
  };

  void end(sim::world& w, const sim::logged_event& e, const host_operations& h) {
    const std::uint64_t id = e.fields[0];
    switch (e.fields[1]) {
      case by_null: happened(w, e, id, answered_null{}); break;
      case by_callback: happened(w, e, id, called_back{}); break;
      case by_error: happened(w, e, id, answered_error{}); break;
      case by_sweep: happened(w, e, id, swept{h.worker_gone}); break;
      case by_refusal: happened(w, e, id, refused{}); break;
      case by_withdrawal: happened(w, e, id, withdrawn{}); break;
      default: break;
    }
  }

  void forget_all() override {
    for (host_operations& h : hosts_) h.forget();
  }
  void forget_host(std::uint16_t host) override { of(host).forget(); }
  host_operations& of(std::uint16_t host) {
    if (hosts_.size() <= host) hosts_.resize(std::size_t{host} + 1);
    return hosts_[host];
  }
  std::vector<host_operations> hosts_;
};

}  // namespace

model& operation_lifecycle() {
  static operation_model one;
  return one;
}

}  // namespace holdfast::models
