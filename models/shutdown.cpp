// The lifecycle of a pool's facade, after the table of spec/pinned-memory 4.7 and the order of its shutdown (7.15).
//
// Known by its pool. The page's `Closing` ends where the pool closes; from there to the sweep is a state of its own here,
// because nothing may be published any more.

#include <models/machine.hpp>

namespace holdfast::models {

namespace {

namespace mpl = boost::mpl;
using boost::msm::front::none;

HOLDFAST_MODEL_EVENT(grew, "growth begins");
HOLDFAST_MODEL_EVENT(published, "arena published");
HOLDFAST_MODEL_EVENT(reclaimed, "sweep of what is idle");
HOLDFAST_MODEL_EVENT(taken, "arena taken by the sweep");
HOLDFAST_MODEL_EVENT(started, "shutdown");
HOLDFAST_MODEL_EVENT(gates_close, "gates close");
HOLDFAST_MODEL_EVENT(drain, "drain");
HOLDFAST_MODEL_EVENT(pool_closes, "pool closes");
HOLDFAST_MODEL_EVENT(sweep, "sweep");
HOLDFAST_MODEL_EVENT(report, "answered, or the deadline passed");
HOLDFAST_MODEL_EVENT(ended, "returns");
HOLDFAST_MODEL_EVENT(witnessed, "witness presented");

HOLDFAST_MODEL_STATE(is_open, "Open");
HOLDFAST_MODEL_STATE(closing, "Closing");
HOLDFAST_MODEL_STATE(draining, "Draining");
HOLDFAST_MODEL_STATE(closed, "Closed");
HOLDFAST_MODEL_STATE(sweeping, "Sweeping");
HOLDFAST_MODEL_STATE(reporting, "Reporting");
HOLDFAST_MODEL_STATE(swept, "Swept");
HOLDFAST_MODEL_STATE(released, "Released");
HOLDFAST_MODEL_STATE(destroyed, "Destroyed");

struct shutdown_machine : front_end<shutdown_machine> {
  using initial_state = is_open;
  // clang-format off
  struct transition_table
      : mpl::vector<
            row<is_open, grew, none>,
            row<is_open, published, none>,
            row<is_open, reclaimed, none>,
            row<is_open, started, closing>,
            // Destroyed without a shutdown: what was in service leaks.
            row<is_open, taken, destroyed>,
            row<closing, grew, none>,
            row<closing, published, none>,
            row<closing, reclaimed, none>,
            row<closing, gates_close, none>,
            row<closing, drain, draining>,
            row<closing, pool_closes, closed>,
            row<draining, grew, none>,
            row<draining, published, none>,
            row<draining, reclaimed, none>,
            row<draining, pool_closes, closed>,
            // The pool closes, and those who wait for a growth are told next.
            row<closed, grew, none>,
            row<closed, sweep, sweeping>,
            row<sweeping, taken, none>,
            row<sweeping, report, reporting>,
            row<reporting, ended, swept>,
            row<swept, witnessed, released>,
            row<destroyed, taken, none>> {};
  // clang-format on
};

class shutdown_model final : public lifecycle<shutdown_machine, is_open> {
 public:
  shutdown_model()
      : lifecycle(
            "shutdown", "spec/pinned-memory 4.7 and 7.15",
            "a pool's shutdown closes the gates, drains, closes the pool, sweeps and reports, in this order and "
            "once; a witness comes after it",
            {event_id::pool_opened, event_id::growth_started, event_id::map_submitted, event_id::map_answered,
             event_id::arena_published, event_id::arena_retired, event_id::reclaim_began, event_id::shutdown_started,
             event_id::shutdown_step, event_id::shutdown_ended, event_id::forced_release}) {}

 private:
  void see(sim::world& w, const sim::logged_event& e, event_id kind) override {
    const std::uint64_t* const f = e.fields;
    switch (kind) {
      case event_id::pool_opened: born(e, f[0]); break;
      case event_id::growth_started:
        names_of(e.host).growing[e.fiber] = f[0];
        happened(w, e, f[0], grew{});
        break;
      case event_id::map_submitted:
        if (const std::uint64_t* const pool = names_of(e.host).growing.find(e.fiber))
          names_of(e.host).by_block[f[0]] = *pool;
        break;
      case event_id::map_answered:
        if (const std::uint64_t* const pool = names_of(e.host).by_block.find(f[0]); pool != nullptr && f[3] != 0)
          names_of(e.host).by_region[f[1]] = *pool;
        break;
      case event_id::arena_published: of_region(w, e, f[1], published{}); break;
      case event_id::arena_retired:
        if (f[4] == by_shutdown) of_region(w, e, f[1], taken{});
        break;
      case event_id::reclaim_began: happened(w, e, f[0], reclaimed{}); break;
      case event_id::shutdown_started: happened(w, e, f[0], started{}); break;
      case event_id::shutdown_step: step(w, e, f[0], f[1]); break;
      case event_id::shutdown_ended: happened(w, e, f[0], ended{}); break;
      case event_id::forced_release: happened(w, e, f[0], witnessed{}); break;
      default: break;
    }
  }
  void step(sim::world& w, const sim::logged_event& e, std::uint64_t pool, std::uint64_t which) {
    switch (which) {
      case 0: happened(w, e, pool, gates_close{}); break;
      case 1: happened(w, e, pool, drain{}); break;
      case 2: happened(w, e, pool, pool_closes{}); break;
      case 3: happened(w, e, pool, sweep{}); break;
      default: happened(w, e, pool, report{}); break;
    }
  }
  void forget_all() override {
    for (names& h : names_) h.forget();
  }
  void forget_host(std::uint16_t host) override { names_of(host).forget(); }

  // An arena is known by its region; its pool, by who asked for the map.
  struct names {
    invariants::id_table<std::uint64_t> growing, by_block, by_region;
    void forget() {
      growing.forget();
      by_block.forget();
      by_region.forget();
    }
  };
  names& names_of(std::uint16_t host) {
    if (names_.size() <= host) names_.resize(std::size_t{host} + 1);
    return names_[host];
  }
  template <class Event>
  void of_region(sim::world& w, const sim::logged_event& e, std::uint64_t region, const Event& event) {
    if (const std::uint64_t* const pool = names_of(e.host).by_region.find(region)) happened(w, e, *pool, event);
  }
  // Order of arena_retired's reasons in telemetry/events.def.
  static constexpr std::uint64_t by_shutdown = 1;
  std::vector<names> names_;
};

}  // namespace

model& shutdown_lifecycle() {
  static shutdown_model one;
  return one;
}

}  // namespace holdfast::models
