// The lifecycle of a transport, after the table of spec/transport 4.1, without what a lost network card does to it.
//
// A transport that is destroyed without a teardown is hung at once, whatever it did: nobody is left to be told. One whose
// library fails for good closes without having been asked.

#include <models/machine.hpp>

namespace holdfast::models {

namespace {

namespace mpl = boost::mpl;
using boost::msm::front::none;

HOLDFAST_MODEL_EVENT(created, "create");
HOLDFAST_MODEL_EVENT(refused, "a probe refuses");
HOLDFAST_MODEL_EVENT(passed, "probes pass");
HOLDFAST_MODEL_EVENT(asked, "close");
HOLDFAST_MODEL_EVENT(failed, "fatal error");
HOLDFAST_MODEL_EVENT(closed, "endpoints closed or parked, or deadline");
HOLDFAST_MODEL_EVENT(destroyed, "worker destruction returned");
HOLDFAST_MODEL_EVENT(unmapped, "context closed");
HOLDFAST_MODEL_EVENT(deadline, "no return by the deadline");

HOLDFAST_MODEL_STATE(is_new, "New");
HOLDFAST_MODEL_STATE(probing, "Probing");
HOLDFAST_MODEL_STATE(absent, "Absent");
HOLDFAST_MODEL_STATE(running, "Running");
HOLDFAST_MODEL_STATE(closing, "Closing");
HOLDFAST_MODEL_STATE(destroying, "Destroying");
HOLDFAST_MODEL_STATE(swept, "Swept");
HOLDFAST_MODEL_STATE(gone, "Gone");
HOLDFAST_MODEL_STATE(hung, "Hung");

struct transport_machine : front_end<transport_machine> {
  using initial_state = is_new;
  // clang-format off
  struct transition_table
      : mpl::vector<
            row<is_new, created, probing>,
            row<probing, refused, absent>,
            row<probing, passed, running>,
            row<running, asked, closing>,
            row<running, failed, closing>,
            row<running, deadline, hung>,
            row<closing, closed, destroying>,
            row<closing, deadline, hung>,
            row<destroying, destroyed, swept>,
            row<destroying, deadline, hung>,
            row<swept, unmapped, gone>,
            row<swept, deadline, hung>> {};
  // clang-format on
};

class transport_model final : public lifecycle<transport_machine, is_new> {
 public:
  transport_model()
      : lifecycle("transport", "spec/transport 4.1",
                  "a transport is probed, runs, closes, and is gone when worker and context are, or hung",
                  {event_id::transport_state, event_id::transport_failed}) {}

 private:
  // In the order of transport_state in telemetry/events.def.
  enum state : std::uint64_t {
    at_probing,
    at_absent,
    at_running,
    at_closing,
    at_destroying,
    at_swept,
    at_gone,
    at_hung
  };

  void see(sim::world& w, const sim::logged_event& e, event_id kind) override {
    const std::uint64_t epoch = e.fields[0];
    if (failed_.size() <= e.host) failed_.resize(std::size_t{e.host} + 1);
    if (kind == event_id::transport_failed) {
      failed_[e.host] = true;
      return;
    }
    switch (e.fields[1]) {
      case at_probing:
        failed_[e.host] = false;
        born(e, epoch);
        happened(w, e, epoch, created{});
        break;
      case at_absent: happened(w, e, epoch, refused{}); break;
      case at_running: happened(w, e, epoch, passed{}); break;
      case at_closing:
        if (failed_[e.host])
          happened(w, e, epoch, failed{});
        else
          happened(w, e, epoch, asked{});
        break;
      case at_destroying: happened(w, e, epoch, closed{}); break;
      case at_swept: happened(w, e, epoch, destroyed{}); break;
      case at_gone: happened(w, e, epoch, unmapped{}); break;
      case at_hung: happened(w, e, epoch, deadline{}); break;
      default: break;
    }
  }
  void forget_all() override { failed_.clear(); }
  void forget_host(std::uint16_t host) override {
    if (host < failed_.size()) failed_[host] = false;
  }
  std::vector<bool> failed_;
};

}  // namespace

model& transport_lifecycle() {
  static transport_model one;
  return one;
}

}  // namespace holdfast::models
