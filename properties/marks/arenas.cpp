// Marks of arenas that are built, and of what became of their callers meanwhile.
#include <properties/marks/mark.hpp>

namespace holdfast::marks {

namespace {

// Of arena_retired, in the order of its enumeration.
enum retire_reason : std::uint64_t { reclaim, shutdown, cancelled, closed, failed };

class found_under_the_claim final : public mark_detector {
 public:
  found_under_the_claim()
      : mark_detector(
            {kind_of(event_id::growth_claimed), kind_of(event_id::growth_started), kind_of(event_id::span_granted)}) {}
  void begin() override { searching_ = false; }
  void see(const logged_event& e) override {
    // The search follows within the same critical section.
    if (searching_ && e.kind == event_id::span_granted && e.host == host_ && e.fiber == fiber_) reached();
    searching_ = e.kind == event_id::growth_claimed;
    host_ = e.host;
    fiber_ = e.fiber;
  }

 private:
  bool searching_ = false;
  std::uint16_t host_ = 0;
  std::uint32_t fiber_ = 0;
};

bool shut_down_in_flight(const logged_event& e) { return e.fields[4] == retire_reason::shutdown && e.fields[3] != 0; }
bool built_too_late(const logged_event& e) { return e.fields[4] == retire_reason::closed; }
bool built_for_nobody(const logged_event& e) { return e.fields[4] == retire_reason::cancelled; }
bool adopted(const logged_event& e) { return e.fields[4] == 0 && e.fields[5] != 0; }

const mark_registrar<found_under_the_claim> pm_h21{
    "PM-H21", "a miss that came to the growth claim found room on its second search"};
const mark_registrar<single_event<event_id::arena_retired, shut_down_in_flight>> pm_h39{
    "PM-H39", "a shutdown retired an arena with a transfer in flight"};
const mark_registrar<single_event<event_id::arena_retired, built_too_late>> pm_h43{
    "PM-H43", "an arena was registered when its pool had been closed already"};
const mark_registrar<single_event<event_id::arena_published, adopted>> pm_h66{
    "PM-H66", "a pooled arena came into service when everybody who waited for it had given up"};
const mark_registrar<single_event<event_id::arena_retired, built_for_nobody>> pm_h67{
    "PM-H67", "a dedicated arena was registered when its caller had given up"};

}  // namespace

}  // namespace holdfast::marks
