// The lifecycle of a reservation, after the table of spec/pinned-memory 4.2.
//
// Events name a ledger and an amount, not a reservation: which one is meant is found by its amount, that of the same
// fiber first. What was raised is known when it is spent, because both happen on one fiber, one after the other.

#include <models/machine.hpp>

#include <algorithm>

namespace holdfast::models {

namespace {

namespace mpl = boost::mpl;
using boost::msm::front::none;

HOLDFAST_MODEL_EVENT(reserved, "reserve, fits");
HOLDFAST_MODEL_EVENT(refused, "reserve, does not fit");
HOLDFAST_MODEL_EVENT(committed, "commit");
HOLDFAST_MODEL_EVENT(dropped, "dropped");
struct raised {
  static constexpr std::string_view name = "raised";
  bool above;
};

HOLDFAST_MODEL_STATE(asked, "Asked");
HOLDFAST_MODEL_STATE(open, "Open");
HOLDFAST_MODEL_STATE(spent, "Spent");
HOLDFAST_MODEL_STATE(never_was, "Refused");

HOLDFAST_MODEL_GUARD(above_the_ceiling, "above the ceiling", event.above);
HOLDFAST_MODEL_GUARD(within_the_ceiling, "within", !event.above);

struct reservation_machine : front_end<reservation_machine> {
  using initial_state = asked;
  // clang-format off
  struct transition_table
      : mpl::vector<
            row<asked, reserved, open>,
            row<asked, refused, never_was>,
            row<open, raised, none, within_the_ceiling>,
            row<open, raised, none, above_the_ceiling>,
            row<open, committed, spent>,
            row<open, dropped, spent>> {};
  // clang-format on
};

class reservation_model final : public lifecycle<reservation_machine, asked> {
 public:
  reservation_model()
      : lifecycle("reservation", "spec/pinned-memory 4.2",
                  "what is committed or given back was reserved, with what it was raised by, and once",
                  {event_id::ledger_reserved, event_id::ledger_refused, event_id::ledger_raised,
                   event_id::ledger_dropped, event_id::ledger_committed}) {}

 private:
  void see(sim::world& w, const sim::logged_event& e, event_id kind) override {
    const std::uint64_t* const f = e.fields;
    host_reservations& h = of(e.host);
    switch (kind) {
      case event_id::ledger_reserved:
        born(e, ++h.issued);
        happened(w, e, h.issued, reserved{});
        h.open.push_back({f[0], h.issued, f[1], e.fiber});
        break;
      case event_id::ledger_refused:
        born(e, ++h.issued);
        happened(w, e, h.issued, refused{});
        break;
      case event_id::ledger_raised: h.raises.push_back({f[0], f[3], f[1], e.fiber}); break;
      case event_id::ledger_dropped: spend(w, e, h, dropped{}); break;
      case event_id::ledger_committed: spend(w, e, h, committed{}); break;
      default: break;
    }
  }

  struct amount {
    std::uint64_t ledger;
    std::uint64_t id;  // of a raise: whether it went above the ceiling
    std::uint64_t bytes;
    std::uint32_t fiber;
  };
  struct host_reservations {
    std::uint64_t issued = 0;
    std::vector<amount> open, raises;
    void forget() {
      issued = 0;
      open.clear();
      raises.clear();
    }
  };

  template <class Event>
  void spend(sim::world& w, const sim::logged_event& e, host_reservations& h, const Event& event) {
    const std::uint64_t ledger = e.fields[0], bytes = e.fields[1];
    std::uint64_t more = 0;
    for (const amount& raise : h.raises)
      if (raise.ledger == ledger && raise.fiber == e.fiber) more += raise.bytes;
    const auto matches = [&](const amount& one, bool same_fiber) {
      return one.ledger == ledger && one.bytes + more == bytes && (!same_fiber || one.fiber == e.fiber);
    };
    auto found = std::ranges::find_if(h.open, [&](const amount& one) { return matches(one, true); });
    if (found == h.open.end())
      found = std::ranges::find_if(h.open, [&](const amount& one) { return matches(one, false); });
    if (found == h.open.end()) {
      ++exercised;
      w.violate(id(), std::to_string(bytes) + " bytes of ledger " + std::to_string(ledger) + " of host " +
                          host_name(w, e.host) + " met \"" + std::string(Event::name) +
                          "\", and no open reservation has as many");
      return;
    }
    for (const amount& raise : h.raises)
      if (raise.ledger == ledger && raise.fiber == e.fiber) happened(w, e, found->id, raised{raise.id != 0});
    std::erase_if(h.raises, [&](const amount& raise) { return raise.ledger == ledger && raise.fiber == e.fiber; });
    happened(w, e, found->id, event);
    h.open.erase(found);
  }

  void forget_all() override {
    for (host_reservations& h : reservations_) h.forget();
  }
  void forget_host(std::uint16_t host) override { of(host).forget(); }
  host_reservations& of(std::uint16_t host) {
    if (reservations_.size() <= host) reservations_.resize(std::size_t{host} + 1);
    return reservations_[host];
  }
  std::vector<host_reservations> reservations_;
};

}  // namespace

model& reservation_lifecycle() {
  static reservation_model one;
  return one;
}

}  // namespace holdfast::models
