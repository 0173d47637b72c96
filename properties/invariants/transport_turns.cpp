// What is promised of GETs that take turns on a control endpoint (decision 53). That nobody serves two at once for a reader
// who dies is the simulated library's to say.

#include <properties/invariants/invariant.hpp>

#include <sim/drivers/ucp_double.hpp>

namespace holdfast::invariants {

namespace {

class turns_are_kept_in_order final : public invariant {
 public:
  turns_are_kept_in_order()
      : invariant("TP-D53",
                  "a GET waits for its turn only behind others, is not overtaken, and does not wait while nothing is "
                  "outstanding and the progress thread sleeps; what the library had when it woke that thread is heard "
                  "before anything is sent",
                  {kind_of(event_id::operation_waits), kind_of(event_id::operation_submitted),
                   kind_of(event_id::progress_state), kind_of(hardware_event::driver_call)}) {}

  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::operation_waits) {
      const connection_record& c = b.connections[e.fields[1]];
      promise(w, c.gets_out != 0 || c.waiting.size() > 1, [&] {
        return named(w, e, "operation", e.fields[0]) + " waits for its turn on connection " +
               std::to_string(e.fields[1]) + ", where nothing is outstanding";
      });
    } else if (e.kind == event_id::operation_submitted) {
      const operation_record& o = *b.operations.find(e.fields[0]);
      if (o.kind != operation_kind::get) return;
      promise(w, o.overtook == 0, [&] {
        return named(w, e, "operation", e.fields[0]) + " was submitted before " + std::to_string(o.overtook) +
               " that had waited longer for connection " + std::to_string(e.fields[1]);
      });
    } else if (e.kind == hardware_event::driver_call) {
      judge_call(w, e, b);
    } else if (e.fields[1] == progress_state::sleeping) {
      look(w, e.host, b);
    }
  }
  void judge_when_stuck(world& w, std::uint16_t host, host_books& b) override { look(w, host, b); }

 private:
  void judge_call(world& w, const logged_event& e, host_books& b) {
    using sim::ucp_double::function;
    const auto what = static_cast<function>(e.fields[0]);
    if ((what != function::ucp_get_nbx && what != function::ucp_am_send_nbx) || e.fiber != b.progress_fiber) return;
    promise(w, !b.unheard, [&] {
      return std::string(sim::ucp_double::name_of(what)) + " of host " + std::string(host_name(w, e.host)) +
             " comes before the library was driven, which had woken the progress thread";
    });
  }
  void look(world& w, std::uint16_t host, host_books& b) {
    for (std::size_t i = 0; i < b.connections.size(); ++i) {
      const connection_record& c = b.connections.at(i);
      if (c.waiting.empty()) continue;
      promise(w, c.gets_out != 0, [&] {
        return "operation " + std::to_string(c.waiting.front()) + " of host " + std::string(host_name(w, host)) +
               " waits for its turn on connection " + std::to_string(b.connections.id_at(i)) +
               ", where nothing is outstanding, and the progress thread sleeps";
      });
    }
  }
};

}  // namespace

void add_transport_turns(invariant_list& list) { list.push_back(std::make_unique<turns_are_kept_in_order>()); }

}  // namespace holdfast::invariants
