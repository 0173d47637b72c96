// Marks of endpoints through shared memory, which outlive the connections that use them.
#include <properties/invariants/id_table.hpp>
#include <properties/marks/mark.hpp>

namespace holdfast::marks {

namespace {

// Of endpoint_state, in the order of its enumerations.
constexpr std::uint64_t is_open = 0;
constexpr std::uint64_t is_parked = 5;
constexpr std::uint64_t lane_data = 1;

class data_endpoint_taken_over final : public mark_detector {
 public:
  data_endpoint_taken_over() : mark_detector({kind_of(event_id::endpoint_state)}) {}
  void begin() override { endpoints_.forget(); }
  void see(const logged_event& e) override {
    if (e.fields[3] != lane_data) return;
    endpoint& one = endpoints_[std::uint64_t{e.host} << 48 | e.fields[0]];
    if (one.parked && e.fields[2] == is_open) reached();
    one.parked = e.fields[2] == is_parked;
  }

 private:
  struct endpoint {
    bool parked = false;
  };
  invariants::id_table<endpoint> endpoints_;
};

bool enough_of_them(const logged_event& e) { return e.fields[1] == 0; }

const mark_registrar<data_endpoint_taken_over> tp_h64{
    "TP-H64", "a connection took over the data endpoint that an earlier one to the same life had left"};
const mark_registrar<single_event<event_id::data_endpoint_refused, enough_of_them>> tp_h65{
    "TP-H65", "there were as many data endpoints as are allowed, and a connection went without"};

}  // namespace

}  // namespace holdfast::marks
