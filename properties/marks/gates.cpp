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

const mark_registrar<emptied_by_another> pm_h42{
    "PM-H42", "the last ticket of a closed gate was dropped by another fiber than the one that closed it"};

}  // namespace

}  // namespace holdfast::marks
