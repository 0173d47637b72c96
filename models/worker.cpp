// The lifecycle of a worker's progress thread, after the table of spec/transport 4.2.
//
// Spinning is part of `Working`: it tells nothing. That an arming was withdrawn is seen by what the thread does next.

#include <models/machine.hpp>

namespace holdfast::models {

namespace {

namespace mpl = boost::mpl;
using boost::msm::front::none;

HOLDFAST_MODEL_EVENT(started, "started");
HOLDFAST_MODEL_EVENT(posts, "an operation is handed over");
HOLDFAST_MODEL_EVENT(arms, "nothing to do: about to sleep");
HOLDFAST_MODEL_EVENT(withdrew, "busy, or work after all");
struct sleeps {
  static constexpr std::string_view name = "armed, still nothing";
  bool queued;
};
struct woke {
  static constexpr std::string_view name = "woke";
  std::uint64_t cause;  // in the order of progress_woke in telemetry/events.def
};
struct stopped {
  static constexpr std::string_view name = "stopped";
  bool worker_gone;
};

HOLDFAST_MODEL_STATE(is_new, "New");
HOLDFAST_MODEL_STATE(working, "Working");
HOLDFAST_MODEL_STATE(arming, "Arming");
HOLDFAST_MODEL_STATE(sleeping, "Sleeping");
HOLDFAST_MODEL_STATE(is_stopped, "Stopped");

HOLDFAST_MODEL_GUARD(queue_empty, "queue empty", !event.queued);
HOLDFAST_MODEL_GUARD(by_submitter, "our event", event.cause == 1 || event.cause == 3);
HOLDFAST_MODEL_GUARD(by_library, "the library's descriptor", event.cause == 2);
HOLDFAST_MODEL_GUARD(by_deadline, "a deadline", event.cause == 4);
HOLDFAST_MODEL_GUARD(by_nothing, "no cause", event.cause == 0);
HOLDFAST_MODEL_GUARD(after_destruction, "worker destroyed", event.worker_gone);

struct worker_machine : front_end<worker_machine> {
  using initial_state = is_new;
  // clang-format off
  struct transition_table
      : mpl::vector<
            row<is_new, started, working>,
            row<working, posts, none>,
            row<working, arms, arming>,
            row<arming, withdrew, working>,
            row<arming, sleeps, sleeping, queue_empty>,
            row<sleeping, woke, working, by_submitter>,
            row<sleeping, woke, working, by_library>,
            row<sleeping, woke, working, by_deadline>,
            row<sleeping, woke, working, by_nothing>,
            row<working, stopped, is_stopped, after_destruction>> {};
  // clang-format on
};

class worker_model final : public lifecycle<worker_machine, is_new> {
 public:
  worker_model()
      : lifecycle(
            "worker", "spec/transport 4.2",
            "a progress thread sleeps after it armed and looked once more, hands nothing over meanwhile, and stops "
            "after its worker was destroyed",
            {event_id::progress_state, event_id::progress_woke, event_id::operation_submitted,
             event_id::transport_state, event_id::worker_destroyed}) {}

 private:
  // In the order of progress_state in telemetry/events.def.
  enum state : std::uint64_t { at_working, at_arming, at_sleeping, at_stopped };

  void see(sim::world& w, const sim::logged_event& e, event_id kind) override {
    const std::uint64_t* const f = e.fields;
    host_worker& h = of(e.host);
    switch (kind) {
      case event_id::transport_state:
        // A process has one transport at a time; its worker begins with it.
        if (f[1] == 0) h = host_worker{};
        break;
      case event_id::worker_destroyed: h.worker_gone = true; break;
      case event_id::operation_submitted:
        go_on(w, e, h);
        if (h.known) happened(w, e, h.epoch, posts{});
        break;
      case event_id::progress_woke:
        h.armed = false;
        happened(w, e, f[0], woke{f[1]});
        break;
      default: moved(w, e, h); break;
    }
  }

  struct host_worker {
    std::uint64_t epoch = 0;
    bool known = false;
    bool worker_gone = false;
    bool armed = false;  // and neither asleep nor withdrawn
  };

  void go_on(sim::world& w, const sim::logged_event& e, host_worker& h) {
    if (!h.armed) return;
    h.armed = false;
    happened(w, e, h.epoch, withdrew{});
  }
  void moved(sim::world& w, const sim::logged_event& e, host_worker& h) {
    const std::uint64_t epoch = e.fields[0];
    switch (e.fields[1]) {
      case at_working:
        h.epoch = epoch;
        h.known = true;
        born(e, epoch);
        happened(w, e, epoch, started{});
        break;
      case at_arming:
        go_on(w, e, h);
        happened(w, e, epoch, arms{});
        h.armed = true;
        break;
      case at_sleeping:
        h.armed = false;
        happened(w, e, epoch, sleeps{e.fields[2] != 0});
        break;
      case at_stopped:
        go_on(w, e, h);
        happened(w, e, epoch, stopped{h.worker_gone});
        break;
      default: break;
    }
  }

  void forget_all() override { hosts_.clear(); }
  void forget_host(std::uint16_t host) override { of(host) = host_worker{}; }
  host_worker& of(std::uint16_t host) {
    if (hosts_.size() <= host) hosts_.resize(std::size_t{host} + 1);
    return hosts_[host];
  }
  std::vector<host_worker> hosts_;
};

}  // namespace

model& worker_lifecycle() {
  static worker_model one;
  return one;
}

}  // namespace holdfast::models
