// What is promised of endpoints through shared memory, which outlive the connections that use them (decision 52).

#include <properties/invariants/invariant.hpp>

namespace holdfast::invariants {

namespace {

class a_data_endpoint_belongs_to_a_life final : public invariant {
 public:
  a_data_endpoint_belongs_to_a_life()
      : invariant("TP-D52",
                  "an endpoint through shared memory serves one life of one peer; none is made beside one that is free "
                  "for that life, and never more than four for each connection that is allowed",
                  {kind_of(event_id::endpoint_state)}) {}

  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.fields[2] != endpoint_state::open || e.fields[3] != endpoint_lane::data) return;
    const endpoint_record& opened = *b.endpoints.find(e.fields[0]);
    if (opened.before == endpoint_state::parked) {
      const connection_record* const c = b.connections.find(e.fields[1]);
      promise(w, c != nullptr && c->incarnation == opened.life, [&] {
        return named(w, e, "endpoint", e.fields[0]) + " through shared memory leads to incarnation " +
               std::to_string(opened.life) + " and was taken over for another";
      });
      return;
    }
    std::uint64_t alive = 0;
    for (std::size_t i = 0; i < b.endpoints.size(); ++i) {
      const endpoint_record& other = b.endpoints.at(i);
      if (other.lane != endpoint_lane::data || other.state == endpoint_state::destroyed) continue;
      ++alive;
      const bool is_free = other.state == endpoint_state::parked && other.failed == 0;
      promise(w, !is_free || other.life != opened.life, [&] {
        return named(w, e, "endpoint", e.fields[0]) + " through shared memory was made, and endpoint " +
               std::to_string(b.endpoints.id_at(i)) + " to the same life is free";
      });
    }
    promise(w, b.connections_max == 0 || alive <= 4 * b.connections_max, [&] {
      return named(w, e, "endpoint", e.fields[0]) + " through shared memory is one of " + std::to_string(alive) +
             ", with " + std::to_string(b.connections_max) + " connections allowed";
    });
  }
};

}  // namespace

void add_transport_memory(invariant_list& list) {
  list.push_back(std::make_unique<a_data_endpoint_belongs_to_a_life>());
}

}  // namespace holdfast::invariants
