// The lifecycle of a span, its buffer and its transfer hold, after the table of spec/pinned-memory 4.4.
//
// A transfer has the buffer while it is in flight: when its caller gave up, the granules become free when the operation
// goes, which is after its hold. So `InFlightOnly` has a successor, `Ending`, that the page's table leaves out; and the
// caller's word that he gave up may come at any time after that.

#include <models/machine.hpp>

namespace holdfast::models {

namespace {

namespace mpl = boost::mpl;
using boost::msm::front::none;

HOLDFAST_MODEL_EVENT(cut, "cut");
HOLDFAST_MODEL_EVENT(released, "last owner gone");
HOLDFAST_MODEL_EVENT(hold_taken, "hold taken");
HOLDFAST_MODEL_EVENT(hold_dropped, "transfer finished");
HOLDFAST_MODEL_EVENT(given_up, "caller cancelled");
HOLDFAST_MODEL_EVENT(quarantined, "fate unknown");
HOLDFAST_MODEL_EVENT(discharged, "fate known");
HOLDFAST_MODEL_EVENT(lost, "no evidence will come");

HOLDFAST_MODEL_STATE(is_free, "Free");
HOLDFAST_MODEL_STATE(held, "Held");
HOLDFAST_MODEL_STATE(in_flight, "HeldInFlight");
HOLDFAST_MODEL_STATE(in_flight_only, "InFlightOnly");
HOLDFAST_MODEL_STATE(ending, "Ending");
HOLDFAST_MODEL_STATE(orphaned, "QuarantinedInFlight");
HOLDFAST_MODEL_STATE(in_quarantine, "Quarantined");
HOLDFAST_MODEL_STATE(gone, "Gone");

struct span_machine : front_end<span_machine> {
  using initial_state = is_free;
  // clang-format off
  struct transition_table
      : mpl::vector<
            row<is_free, cut, held>,
            row<is_free, given_up, none>,
            row<held, released, is_free>,
            row<held, hold_taken, in_flight>,
            row<held, given_up, ending>,
            row<in_flight, hold_dropped, held>,
            row<in_flight, given_up, in_flight_only>,
            row<in_flight, quarantined, orphaned>,
            row<in_flight_only, hold_dropped, ending>,
            row<in_flight_only, given_up, none>,
            row<in_flight_only, quarantined, orphaned>,
            row<ending, released, is_free>,
            row<ending, given_up, none>,
            row<orphaned, given_up, none>,
            row<orphaned, discharged, in_flight_only>,
            row<orphaned, hold_dropped, in_quarantine>,
            row<in_quarantine, given_up, none>,
            row<in_quarantine, discharged, gone>,
            row<in_quarantine, lost, gone>,
            row<gone, given_up, none>,
            // The operation that was lost had the buffer: it lets go after the arena settled.
            row<gone, released, none>> {};
  // clang-format on
};

class span_model final : public lifecycle<span_machine, is_free> {
 public:
  span_model()
      : lifecycle("span", "spec/pinned-memory 4.4",
                  "granules are cut, lent to one transfer at a time and freed when the last owner is gone, but never "
                  "while a transfer's fate is unknown",
                  {event_id::span_granted, event_id::span_released, event_id::hold_taken, event_id::hold_dropped,
                   event_id::get_abandoned, event_id::span_quarantined, event_id::span_discharged,
                   event_id::quarantine_given_up}) {}

 private:
  void see(sim::world& w, const sim::logged_event& e, event_id kind) override {
    const std::uint64_t* const f = e.fields;
    switch (kind) {
      case event_id::span_granted:
        if (find(e, f[0]) == nullptr) born(e, f[0]);
        happened(w, e, f[0], cut{});
        break;
      case event_id::span_released: happened(w, e, f[0], released{}); break;
      case event_id::hold_taken: happened(w, e, f[0], hold_taken{}); break;
      case event_id::hold_dropped: happened(w, e, f[0], hold_dropped{}); break;
      case event_id::get_abandoned: happened(w, e, f[0], given_up{}); break;
      case event_id::span_quarantined: happened(w, e, f[0], quarantined{}); break;
      case event_id::span_discharged: happened(w, e, f[0], discharged{}); break;
      case event_id::quarantine_given_up:
        if (f[1] == span_kind) happened(w, e, f[2], lost{});
        break;
      default: break;
    }
  }
  // Order of quarantine_given_up's kinds in telemetry/events.def.
  static constexpr std::uint64_t span_kind = 2;
};

}  // namespace

model& span_lifecycle() {
  static span_model one;
  return one;
}

}  // namespace holdfast::models
