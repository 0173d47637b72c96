// The lifecycle of an arena, after the tables of spec/pinned-memory 4.3: a registration axis and an occupancy axis.
//
// An arena is known by its block until its map answers, and by its region afterwards.

// The table has more rows than Boost.MPL's preprocessed vectors.
#define BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS
#define BOOST_MPL_LIMIT_LIST_SIZE 40
#define BOOST_MPL_LIMIT_VECTOR_SIZE 40

#include <models/model.hpp>
#include <models/table.hpp>

#include <properties/invariants/id_table.hpp>
#include <sim/kernel/world.hpp>

#include <boost/msm/back/state_machine.hpp>
#include <boost/msm/front/functor_row.hpp>
#include <boost/msm/front/state_machine_def.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::models {

namespace {

namespace mpl = boost::mpl;
namespace front = boost::msm::front;
using front::none;

// Events ---------------------------------------------------------------------------------------------------------
#define HOLDFAST_MODEL_EVENT(type, text) \
  struct type {                          \
    static constexpr std::string_view name = text; \
  }
HOLDFAST_MODEL_EVENT(map_answered, "map ok");
HOLDFAST_MODEL_EVENT(map_failed, "map failed");
HOLDFAST_MODEL_EVENT(unmap_submitted, "unmap submitted");
HOLDFAST_MODEL_EVENT(unmap_confirmed, "unmap confirmed");
HOLDFAST_MODEL_EVENT(unmap_refused, "unmap refused");
HOLDFAST_MODEL_EVENT(unmap_unknown, "unmap unknown");
HOLDFAST_MODEL_EVENT(unconfirmed, "not confirmed");
HOLDFAST_MODEL_EVENT(began_empty, "adopted");
#undef HOLDFAST_MODEL_EVENT
struct published {
  static constexpr std::string_view name = "published";
  bool adopted;
};
struct retired {
  static constexpr std::string_view name = "retired";
  std::uint64_t reason;
};
struct settled {
  static constexpr std::string_view name = "settled";
  bool forced;
};
struct span_cut {
  static constexpr std::string_view name = "span cut";
};
struct span_destroyed {
  static constexpr std::string_view name = "span destroyed";
};

// States ---------------------------------------------------------------------------------------------------------
/// A flag: spans may be cut.
struct serving {};

#define HOLDFAST_MODEL_STATE(type, text)         \
  struct type : front::state<> {                 \
    static constexpr std::string_view name = text; \
  }
#define HOLDFAST_MODEL_SERVING_STATE(type, text)   \
  struct type : front::state<> {                   \
    static constexpr std::string_view name = text; \
    using flag_list = mpl::vector1<serving>;       \
  }
HOLDFAST_MODEL_SERVING_STATE(building, "Building");
HOLDFAST_MODEL_SERVING_STATE(in_service, "Published");
HOLDFAST_MODEL_STATE(retiring, "Retiring");
HOLDFAST_MODEL_STATE(not_confirmed, "Unconfirmed");
HOLDFAST_MODEL_STATE(over, "Settled");
HOLDFAST_MODEL_STATE(gone, "Gone");
HOLDFAST_MODEL_STATE(fresh, "Fresh");
HOLDFAST_MODEL_STATE(occupied, "Occupied");
HOLDFAST_MODEL_STATE(empty, "Empty");
#undef HOLDFAST_MODEL_STATE
#undef HOLDFAST_MODEL_SERVING_STATE

// Guards ---------------------------------------------------------------------------------------------------------
#define HOLDFAST_MODEL_GUARD(type, text, condition)                              \
  struct type {                                                                  \
    static constexpr std::string_view name = text;                               \
    template <class Event, class Machine, class From, class To>                  \
    bool operator()([[maybe_unused]] const Event& event, [[maybe_unused]] Machine& machine, From&, To&) const { \
      return condition;                                                          \
    }                                                                            \
  }
// Order of arena_retired's reasons in telemetry/events.def.
HOLDFAST_MODEL_GUARD(by_reclaim, "reclaim", event.reason == 0);
HOLDFAST_MODEL_GUARD(by_shutdown, "shutdown", event.reason == 1);
HOLDFAST_MODEL_GUARD(caller_cancelled, "caller cancelled", event.reason == 2);
HOLDFAST_MODEL_GUARD(pool_closed, "pool closed", event.reason == 3);
HOLDFAST_MODEL_GUARD(build_failed, "failed on the way", event.reason == 4);
HOLDFAST_MODEL_GUARD(by_pressure, "pressure", event.reason == 5);
HOLDFAST_MODEL_GUARD(caller_waits, "caller waits", !event.adopted);
HOLDFAST_MODEL_GUARD(caller_gone, "adopted", event.adopted);
HOLDFAST_MODEL_GUARD(was_confirmed, "confirmed", !event.forced && machine.confirmed);
HOLDFAST_MODEL_GUARD(by_force, "forced", event.forced);
HOLDFAST_MODEL_GUARD(is_serving, "in service", machine.template is_flag_active<serving>());
HOLDFAST_MODEL_GUARD(last_span, "the last", machine.live == 1);
HOLDFAST_MODEL_GUARD(others_live, "others live", machine.live > 1);
#undef HOLDFAST_MODEL_GUARD

// The table ------------------------------------------------------------------------------------------------------
struct arena_machine : front::state_machine_def<arena_machine> {
  // One event at a time, and nothing throws: no queues, so that a machine is a few bytes.
  using no_message_queue = int;
  using no_exception_thrown = int;
  using initial_state = mpl::vector<building, fresh>;

  template <class Source, class Event, class Target, class Guard = none>
  using row = front::Row<Source, Event, Target, counted<arena_machine, Source, Event, Target, Guard>, Guard>;

  struct transition_table
      : mpl::vector<
            // Registration
            row<building, map_answered, none>,
            row<building, map_failed, gone>,
            row<building, published, in_service, caller_waits>,
            row<building, published, in_service, caller_gone>,
            row<building, retired, retiring, caller_cancelled>,
            row<building, retired, retiring, pool_closed>,
            row<building, retired, retiring, build_failed>,
            row<in_service, retired, retiring, by_reclaim>,
            row<in_service, retired, retiring, by_pressure>,
            row<in_service, retired, retiring, by_shutdown>,
            row<retiring, unmap_submitted, none>,
            row<retiring, unmap_refused, none>,
            row<retiring, unmap_unknown, none>,
            row<retiring, unmap_confirmed, none>,
            row<retiring, unconfirmed, not_confirmed>,
            row<retiring, settled, over, was_confirmed>,
            row<retiring, settled, over, by_force>,
            row<not_confirmed, unmap_submitted, none>,
            row<not_confirmed, unmap_refused, none>,
            row<not_confirmed, unmap_unknown, none>,
            row<not_confirmed, unmap_confirmed, none>,
            row<not_confirmed, settled, over, was_confirmed>,
            row<not_confirmed, settled, over, by_force>,
            row<over, unmap_confirmed, none>,
            row<over, unmap_unknown, none>,
            // Occupancy
            row<fresh, began_empty, empty>,
            row<fresh, span_cut, occupied, is_serving>,
            row<occupied, span_cut, occupied, is_serving>,
            row<occupied, span_destroyed, occupied, others_live>,
            row<occupied, span_destroyed, empty, last_span>,
            row<empty, span_cut, occupied, is_serving>> {};

  template <class Machine, class Event>
  void no_transition(const Event&, Machine&, int) {}

  bool confirmed = false;
  std::uint64_t live = 0;
};

using machine = boost::msm::back::state_machine<arena_machine>;

constexpr std::string_view specification = "spec/pinned-memory 4.3";

// Feeding --------------------------------------------------------------------------------------------------------
class arena_model final : public model, public sim::check {
 public:
  arena_model() { prototype_.start(); }

  std::string_view name() const noexcept override { return "arena"; }
  std::string_view source() const noexcept override { return specification; }
  std::vector<transition> transitions() const override {
    return transitions_of<arena_machine, arena_machine::transition_table, none>();
  }
  std::vector<std::string_view> states() const override { return states_of(transitions()); }
  std::string dot() const override { return draw(name(), specification, {building::name, fresh::name}, transitions()); }
  sim::check& feed() noexcept override { return *this; }

  std::string_view id() const noexcept override { return "model arena"; }
  std::string_view sentence() const noexcept override {
    return "an arena's events follow its lifecycle: built, published, retired, unmapped, settled once";
  }
  std::vector<sim::event_kind> wants() const override {
    std::vector<sim::event_kind> out;
    for (const event_id id :
         {event_id::map_submitted, event_id::map_answered, event_id::arena_published, event_id::arena_retired,
          event_id::unmap_submitted, event_id::unmap_answered, event_id::arena_unconfirmed, event_id::arena_settled,
          event_id::span_granted, event_id::span_released})
      out.push_back(sim::kind_of(id));
    out.push_back(sim::kind_of(sim::hardware_event::host_crashed));
    return out;
  }

  void begin(sim::world&) override {
    for (host_arenas& h : hosts_) h.forget();
  }

  void on_event(sim::world& w, const sim::logged_event& e) override {
    if (e.host == 0xffff) return;
    if (hosts_.size() <= e.host) hosts_.resize(std::size_t{e.host} + 1);
    host_arenas& h = hosts_[e.host];
    if (e.kind == sim::hardware_event::host_crashed) return h.forget();
    ++evaluated;
    const std::uint64_t* const f = e.fields;
    switch (static_cast<event_id>(e.kind)) {
      case event_id::map_submitted: h.by_block[f[0]] = h.add(prototype_); break;
      case event_id::map_answered: {
        const std::uint32_t* const index = h.by_block.find(f[0]);
        if (index == nullptr) break;
        if (f[3] == 0) {
          step(w, e, f[0], h.machines[*index], map_failed{});
        } else {
          h.by_region[f[1]] = *index;
          step(w, e, f[1], h.machines[*index], map_answered{});
        }
        break;
      }
      case event_id::arena_published:
        with(w, e, h, f[1], published{f[5] != 0});
        if (f[5] != 0) with(w, e, h, f[1], began_empty{});
        break;
      case event_id::arena_retired: with(w, e, h, f[1], retired{f[4]}); break;
      case event_id::unmap_submitted: with(w, e, h, f[0], unmap_submitted{}); break;
      case event_id::unmap_answered:
        if (f[2] == 0) {
          if (machine* const m = h.find(f[0])) m->confirmed = true;
          with(w, e, h, f[0], unmap_confirmed{});
        } else if (f[2] == 1) {
          with(w, e, h, f[0], unmap_refused{});
        } else {
          with(w, e, h, f[0], unmap_unknown{});
        }
        break;
      case event_id::arena_unconfirmed: with(w, e, h, f[1], unconfirmed{}); break;
      case event_id::arena_settled: with(w, e, h, f[1], settled{f[3] != 0}); break;
      case event_id::span_granted:
        with(w, e, h, f[1], span_cut{});
        if (machine* const m = h.find(f[1])) ++m->live;
        break;
      case event_id::span_released:
        with(w, e, h, f[1], span_destroyed{});
        if (machine* const m = h.find(f[1]); m != nullptr && m->live != 0) --m->live;
        break;
      default: break;
    }
  }

 private:
  struct host_arenas {
    invariants::id_table<std::uint32_t> by_block, by_region;
    std::vector<machine> machines;

    void forget() {
      by_block.forget();
      by_region.forget();
      machines.clear();
    }
    std::uint32_t add(const machine& prototype) {
      machines.push_back(prototype);
      return static_cast<std::uint32_t>(machines.size() - 1);
    }
    machine* find(std::uint64_t region) {
      const std::uint32_t* const index = by_region.find(region);
      return index != nullptr ? &machines[*index] : nullptr;
    }
  };

  template <class Event>
  void with(sim::world& w, const sim::logged_event& e, host_arenas& h, std::uint64_t region, const Event& event) {
    if (machine* const m = h.find(region)) step(w, e, region, *m, event);
  }
  template <class Event>
  void step(sim::world& w, const sim::logged_event& e, std::uint64_t arena, machine& m, const Event& event) {
    ++exercised;
    if ((m.process_event(event) & boost::msm::back::HANDLED_TRUE) != 0) return;
    w.violate(id(), "arena " + std::to_string(arena) + " of host " + host_name(w, e.host) + " met \"" +
                        std::string(Event::name) + "\" in " + where(m));
  }
  static std::string host_name(sim::world& w, std::uint16_t host) {
    return host < w.hosts().size() ? w.hosts()[host]->name() : std::to_string(host);
  }
  /// "Retiring, Empty"
  static std::string where(machine& m) {
    // The back end numbers states in the order in which its table mentions them as sources, then as targets.
    using stt = machine::stt;
    using states = boost::msm::back::generate_state_set<stt>::type;
    std::string out;
    for (int axis = 0; axis < 2; ++axis) {
      mpl::for_each<states, mpl::make_identity<mpl::_1>>([&]<class State>(mpl::identity<State>) {
        if (boost::msm::back::get_state_id<stt, State>::type::value != m.current_state()[axis]) return;
        if (!out.empty()) out += ", ";
        out += State::name;
      });
    }
    return out;
  }

  machine prototype_;
  std::vector<host_arenas> hosts_;
};

}  // namespace

model& arena_lifecycle() {
  static arena_model one;
  return one;
}

}  // namespace holdfast::models
