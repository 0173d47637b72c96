// The lifecycle of an endpoint, after the table of spec/transport 4.5.
//
// Where the page says that a flushing endpoint is closed by force at its bound, it is parked: a second close of one
// endpoint is what the library forbids. A close that ends after all, or the worker's destruction, is the end of a parked
// one too. One without error mode is parked when its connection ends, and open again when the next takes it over.

#include <models/machine.hpp>

namespace holdfast::models {

namespace {

namespace mpl = boost::mpl;
using boost::msm::front::none;

HOLDFAST_MODEL_EVENT(opened, "created");
HOLDFAST_MODEL_EVENT(failed, "error handler");
HOLDFAST_MODEL_EVENT(flushed, "closed by flush");
HOLDFAST_MODEL_EVENT(close_ended, "close ended");
HOLDFAST_MODEL_EVENT(died, "worker destroyed");
struct taken_over {
  static constexpr std::string_view name = "taken over";
  bool data;
};
struct forced {
  static constexpr std::string_view name = "closed by force";
  bool data;
};
struct given_up {
  static constexpr std::string_view name = "given up";
  bool data;
};

HOLDFAST_MODEL_STATE(is_new, "New");
HOLDFAST_MODEL_STATE(is_open, "Open");
HOLDFAST_MODEL_STATE(is_failed, "Failed");
HOLDFAST_MODEL_STATE(flushing, "Flushing");
HOLDFAST_MODEL_STATE(is_forced, "Forced");
HOLDFAST_MODEL_STATE(parked, "Parked");
HOLDFAST_MODEL_STATE(destroyed, "Destroyed");

HOLDFAST_MODEL_GUARD(reports_errors, "error mode PEER", !event.data);
HOLDFAST_MODEL_GUARD(reports_nothing, "no error mode", event.data);

struct endpoint_machine : front_end<endpoint_machine> {
  using initial_state = is_new;
  // clang-format off
  struct transition_table
      : mpl::vector<
            row<is_new, opened, is_open>,
            row<is_open, failed, is_failed>,
            row<is_open, flushed, flushing>,
            row<is_open, forced, is_forced, reports_errors>,
            row<is_failed, forced, is_forced, reports_errors>,
            row<is_open, given_up, parked, reports_nothing>,
            row<is_failed, given_up, parked, reports_nothing>,
            row<flushing, given_up, parked>,
            row<flushing, close_ended, destroyed>,
            row<is_forced, close_ended, destroyed>,
            row<parked, taken_over, is_open, reports_nothing>,
            row<parked, close_ended, destroyed>,
            row<flushing, died, destroyed>,
            row<is_forced, died, destroyed>,
            row<parked, died, destroyed>> {};
  // clang-format on
};

class endpoint_model final : public lifecycle<endpoint_machine, is_new> {
 public:
  endpoint_model()
      : lifecycle("endpoint", "spec/transport 4.5",
                  "an endpoint fails once, is closed once, by force only where it reports errors, and else stays "
                  "parked until it is taken over",
                  {event_id::endpoint_state, event_id::transport_state, event_id::worker_destroyed}) {}

 private:
  void see(sim::world& w, const sim::logged_event& e, event_id kind) override {
    const std::uint64_t* const f = e.fields;
    if (worker_gone_.size() <= e.host) worker_gone_.resize(std::size_t{e.host} + 1);
    if (kind == event_id::transport_state) {
      if (f[1] == probing) worker_gone_[e.host] = false;
      return;
    }
    if (kind == event_id::worker_destroyed) {
      worker_gone_[e.host] = true;
      return;
    }
    const bool data = f[3] == data_lane;
    switch (f[2]) {
      case 0:
        if (machine* const m = find(e, f[0]); data && m != nullptr && standing(*m, 1) == parked::name) {
          happened(w, e, f[0], taken_over{data});
        } else {
          born(e, f[0]);
          happened(w, e, f[0], opened{});
        }
        break;
      case 1: happened(w, e, f[0], failed{}); break;
      case 2: happened(w, e, f[0], flushed{}); break;
      case 3: happened(w, e, f[0], forced{data}); break;
      case 4:
        if (worker_gone_[e.host])
          happened(w, e, f[0], died{});
        else
          happened(w, e, f[0], close_ended{});
        break;
      case 5: happened(w, e, f[0], given_up{data}); break;
      default: break;
    }
  }
  void forget_all() override { worker_gone_.clear(); }
  void forget_host(std::uint16_t host) override {
    if (host < worker_gone_.size()) worker_gone_[host] = false;
  }

  // Of transport_state and endpoint_state in telemetry/events.def.
  static constexpr std::uint64_t probing = 0, data_lane = 1;
  std::vector<bool> worker_gone_;
};

}  // namespace

model& endpoint_lifecycle() {
  static endpoint_model one;
  return one;
}

}  // namespace holdfast::models
