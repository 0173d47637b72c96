// Promises about the budget: what is charged, against what is registered.

#include <properties/invariants/invariant.hpp>

namespace holdfast::invariants {

namespace {

class counter_is_the_sum final : public invariant {
 public:
  counter_is_the_sum()
      : invariant(
            "PM-I7", "the counter equals open reservations plus charges",
            {kind_of(event_id::ledger_reserved), kind_of(event_id::ledger_raised), kind_of(event_id::ledger_dropped),
             kind_of(event_id::ledger_committed), kind_of(event_id::ledger_released)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    const ledger_record& l = *b.ledgers.find(e.fields[0]);
    if (l.corrupt) return;
    promise(w, l.charged == l.open + l.committed, [&] {
      return named(w, e, "ledger", e.fields[0]) + " counts " + std::to_string(l.charged) +
             " bytes; reservations hold " + std::to_string(l.open) + " and charges " + std::to_string(l.committed);
    });
  }
};

class counter_stays_under_the_ceiling final : public invariant {
 public:
  counter_stays_under_the_ceiling()
      : invariant("PM-I8", "no reservation passes the ceiling, and the devices hold no more than is charged",
                  {kind_of(event_id::ledger_reserved), kind_of(event_id::ledger_dropped),
                   kind_of(event_id::ledger_released), kind_of(hardware_event::nic_registered)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::ledger_reserved) {
      const ledger_record& l = *b.ledgers.find(e.fields[0]);
      if (l.ceiling != none)
        promise(w, l.charged <= l.ceiling, [&] {
          return named(w, e, "ledger", e.fields[0]) + " granted a reservation up to " + std::to_string(l.charged) +
                 " bytes over a ceiling of " + std::to_string(l.ceiling);
        });
    }
    if (b.ledgers.size() == 0) return;
    std::uint64_t charged = 0;
    for (std::size_t i = 0; i < b.ledgers.size(); ++i) charged += b.ledgers.at(i).charged;
    promise(w, b.registered_bytes <= charged, [&] {
      return "host " + std::string(host_name(w, e.host)) + " has " + std::to_string(b.registered_bytes) +
             " bytes registered at the device and is charged for " + std::to_string(charged);
    });
  }
};

class charges_return_once final : public invariant {
 public:
  charges_return_once()
      : invariant("PM-I9", "each charge is released exactly once",
                  {kind_of(event_id::ledger_released), kind_of(event_id::ledger_dropped),
                   kind_of(event_id::ledger_corrupt), kind_of(event_id::arena_settled)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::arena_settled) {
      promise(w, b.arenas[e.fields[0]].settled == 1,
              [&] { return named(w, e, "arena", e.fields[0]) + " was settled twice"; });
      return;
    }
    const ledger_record& l = b.ledgers[e.fields[0]];
    promise(w, !l.corrupt && !l.counted_down_below,
            [&] { return named(w, e, "ledger", e.fields[0]) + " was given back more bytes than were out"; });
  }
};

class an_unconfirmed_unmap_keeps_its_charge final : public invariant {
 public:
  an_unconfirmed_unmap_keeps_its_charge()
      : invariant("PM-I19", "an arena settles only after a confirmed unmap or by force, and is charged until then",
                  {kind_of(event_id::arena_settled), kind_of(event_id::ledger_released)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    if (e.kind == event_id::arena_settled) {
      const region_record* const region = b.regions.find(e.fields[1]);
      promise(w, e.fields[3] != 0 || (region != nullptr && region->confirmed),
              [&] { return named(w, e, "arena", e.fields[0]) + " settled without a confirmed unmap"; });
      return;
    }
    std::uint64_t owed = 0, committed = 0;
    for (std::size_t i = 0; i < b.regions.size(); ++i)
      if (!b.regions.at(i).settled) owed += b.regions.at(i).charge;
    for (std::size_t i = 0; i < b.ledgers.size(); ++i) committed += b.ledgers.at(i).committed;
    promise(w, committed >= owed, [&] {
      return "host " + std::string(host_name(w, e.host)) + " is charged " + std::to_string(committed) +
             " bytes while arenas that are not settled hold " + std::to_string(owed);
    });
  }
};

class broken_books_grant_nothing final : public invariant {
 public:
  broken_books_grant_nothing()
      : invariant("PM-I50", "a corrupt ledger grants nothing", {kind_of(event_id::ledger_reserved)}) {}
  void judge(world& w, const logged_event& e, host_books& b) override {
    promise(w, !b.ledgers[e.fields[0]].corrupt, [&] {
      return named(w, e, "ledger", e.fields[0]) + " reserved " + std::to_string(e.fields[1]) +
             " bytes although its books do not add up";
    });
  }
};

class cancellation_leaves_no_debt final : public invariant {
 public:
  cancellation_leaves_no_debt()
      : invariant("PM-I35",
                  "after a cancellation, once background work settled, the counter is the sum of the charges and every "
                  "arena is in one place",
                  {}) {}
  void judge(world&, const logged_event&, host_books&) override {}
  void judge_at_rest(world& w, std::uint16_t host, host_books& b) override {
    if (b.cancelled == 0 || b.pools.size() == 0 || b.hung != 0) return;
    std::uint64_t charged = 0, open = 0, owed = 0;
    for (std::size_t i = 0; i < b.ledgers.size(); ++i) {
      charged += b.ledgers.at(i).charged;
      open += b.ledgers.at(i).open;
    }
    for (std::size_t i = 0; i < b.regions.size(); ++i)
      if (!b.regions.at(i).settled) owed += b.regions.at(i).charge;
    promise(w, open == 0 && charged == owed, [&] {
      return "host " + std::string(host_name(w, host)) + " is charged " + std::to_string(charged) + " bytes, " +
             std::to_string(open) + " of them reserved by nobody; registrations that are not settled hold " +
             std::to_string(owed);
    });
    for (std::size_t i = 0; i < b.pools.size(); ++i)
      promise(w, b.pools.at(i).building == 0, [&] {
        return "pool " + std::to_string(b.pools.id_at(i)) + " of host " + std::string(host_name(w, host)) +
               " still builds " + std::to_string(b.pools.at(i).building) + " arenas at rest";
      });
    for (std::size_t i = 0; i < b.arenas.size(); ++i) {
      const arena_record& a = b.arenas.at(i);
      promise(w, a.published <= 1 && a.retired <= 1 && a.settled <= a.retired && a.published + a.retired != 0, [&] {
        return "arena " + std::to_string(b.arenas.id_at(i)) + " of host " + std::string(host_name(w, host)) +
               " is in no one place: published " + std::to_string(a.published) + " times, retired " +
               std::to_string(a.retired) + ", settled " + std::to_string(a.settled);
      });
    }
  }
};

}  // namespace

void add_ledger(invariant_list& list) {
  list.push_back(std::make_unique<counter_is_the_sum>());
  list.push_back(std::make_unique<counter_stays_under_the_ceiling>());
  list.push_back(std::make_unique<charges_return_once>());
  list.push_back(std::make_unique<an_unconfirmed_unmap_keeps_its_charge>());
  list.push_back(std::make_unique<broken_books_grant_nothing>());
  list.push_back(std::make_unique<cancellation_leaves_no_debt>());
}

}  // namespace holdfast::invariants
