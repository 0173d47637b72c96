// Marks of capacity that is wanted twice.
#include <properties/invariants/id_table.hpp>
#include <properties/marks/mark.hpp>

namespace holdfast::marks {

namespace {

// The last change of the ledger was an open reservation, of which nothing is known yet; alone, the refused one would
// have fit.
class refused_beside_an_open_reservation final : public mark_detector {
 public:
  refused_beside_an_open_reservation()
      : mark_detector({kind_of(event_id::ledger_reserved), kind_of(event_id::ledger_raised),
                       kind_of(event_id::ledger_dropped), kind_of(event_id::ledger_committed),
                       kind_of(event_id::ledger_released), kind_of(event_id::ledger_refused)}) {}
  void begin() override { ledgers_.forget(); }
  void see(const logged_event& e) override {
    last_change& last = ledgers_[std::uint64_t{e.host} << 48 | e.fields[0]];
    if (e.kind != event_id::ledger_refused) {
      last = {e.kind == event_id::ledger_reserved, e.fiber, e.fields[1]};
      return;
    }
    const std::uint64_t bytes = e.fields[1], charged = e.fields[2], ceiling = e.fields[3];
    if (last.reserved && last.fiber != e.fiber && charged - last.bytes + bytes <= ceiling) reached();
  }

 private:
  struct last_change {
    bool reserved = false;
    std::uint32_t fiber = 0;
    std::uint64_t bytes = 0;
  };
  invariants::id_table<last_change> ledgers_;
};

const mark_registrar<refused_beside_an_open_reservation> pm_h10{
    "PM-H10", "a reservation was refused that would have fit, had another one not been opened just before"};

}  // namespace

}  // namespace holdfast::marks
