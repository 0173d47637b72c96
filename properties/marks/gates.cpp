// Marks of gates that close while somebody is inside.
#include <properties/invariants/id_table.hpp>
#include <properties/marks/mark.hpp>

namespace holdfast::marks {

namespace {

class emptied_by_another final : public mark_detector {
 public:
  emptied_by_another() : mark_detector({kind_of(event_id::gate_closed), kind_of(event_id::gate_drained)}) {}
  void begin() override { closers_.forget(); }
  void see(const logged_event& e) override {
    const std::uint64_t gate = std::uint64_t{e.host} << 48 | e.fields[0];
    if (e.kind == event_id::gate_closed) {
      if (e.fields[1] != 0) closers_[gate] = {e.fiber};
    } else if (const closer* const by = closers_.find(gate); by != nullptr && by->fiber != e.fiber) {
      reached();
    }
  }

 private:
  struct closer {
    std::uint32_t fiber = 0;
  };
  invariants::id_table<closer> closers_;
};

// Entering says nothing, so the step of the workload that asked for it is looked at. Of a bare gate: a pool turns its
// callers away for more reasons. Within one instant: a drain that ends without success has waited for its deadline.
class turned_away_by_a_closing_gate final : public mark_detector {
 public:
  turned_away_by_a_closing_gate()
      : mark_detector({kind_of(hardware_event::op_began), kind_of(hardware_event::op_ended),
                       kind_of(event_id::gate_closed), kind_of(event_id::shutdown_started)}) {}
  void begin() override {
    steps_.forget();
    closings_.forget();
  }
  void see(const logged_event& e) override {
    const std::uint64_t fiber = std::uint64_t{e.host} << 32 | e.fiber;
    closing& last = closings_[e.host];
    if (e.kind == event_id::shutdown_started) {
      last.of_pool = true;
    } else if (e.kind == event_id::gate_closed) {
      last.event = e.number;
      last.fiber = e.fiber;
    } else if (e.kind == hardware_event::op_began) {
      steps_[fiber] = {e.number, e.time_ns};
    } else if (const step* const began = steps_.find(fiber); began != nullptr && e.fields[1] == 0) {
      const bool meanwhile = last.event > began->event && last.fiber != e.fiber;
      if (meanwhile && !last.of_pool && began->time_ns == e.time_ns) reached();
    }
  }

 private:
  struct step {
    std::uint64_t event = 0;
    std::int64_t time_ns = 0;
  };
  struct closing {
    std::uint64_t event = 0;
    std::uint32_t fiber = 0;
    bool of_pool = false;
  };
  invariants::id_table<step> steps_;        // by host and fiber
  invariants::id_table<closing> closings_;  // by host
};

const mark_registrar<turned_away_by_a_closing_gate> pm_h41{
    "PM-H41", "a step that had begun when another fiber closed a gate was turned away at once"};
const mark_registrar<emptied_by_another> pm_h42{
    "PM-H42", "the last ticket of a closed gate was dropped by another fiber than the one that closed it"};

}  // namespace

}  // namespace holdfast::marks
