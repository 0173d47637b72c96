// The lifecycle of an arena, after the tables of spec/pinned-memory 4.3: a registration axis and an occupancy axis.
//
// An arena is known by its block; events name it by its region once its map has answered.

#include <models/machine.hpp>

namespace holdfast::models {

namespace {

namespace mpl = boost::mpl;
using boost::msm::front::none;

// Events ---------------------------------------------------------------------------------------------------------
HOLDFAST_MODEL_EVENT(map_answered, "map ok");
HOLDFAST_MODEL_EVENT(map_failed, "map failed");
HOLDFAST_MODEL_EVENT(unmap_submitted, "unmap submitted");
HOLDFAST_MODEL_EVENT(unmap_confirmed, "unmap confirmed");
HOLDFAST_MODEL_EVENT(unmap_refused, "unmap refused");
HOLDFAST_MODEL_EVENT(unmap_unknown, "unmap unknown");
HOLDFAST_MODEL_EVENT(unconfirmed, "not confirmed");
HOLDFAST_MODEL_EVENT(began_empty, "adopted");
HOLDFAST_MODEL_EVENT(span_cut, "span cut");
HOLDFAST_MODEL_EVENT(span_destroyed, "span destroyed");
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

// States ---------------------------------------------------------------------------------------------------------
/// A flag: spans may be cut.
struct serving {};

#define HOLDFAST_MODEL_SERVING_STATE(type, text)   \
  struct type : boost::msm::front::state<> {       \
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
#undef HOLDFAST_MODEL_SERVING_STATE

// Guards ---------------------------------------------------------------------------------------------------------
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

// The table ------------------------------------------------------------------------------------------------------
struct arena_machine : front_end<arena_machine> {
  using initial_state = mpl::vector<building, fresh>;

  // clang-format off
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
  // clang-format on

  bool confirmed = false;
  std::uint64_t live = 0;
};

// Feeding --------------------------------------------------------------------------------------------------------
class arena_model final : public lifecycle_of_regions<arena_machine, building, fresh> {
 public:
  arena_model()
      : lifecycle_of_regions(
            "arena", "spec/pinned-memory 4.3",
            "an arena's events follow its lifecycle: built, published, retired, unmapped, settled once",
            {event_id::map_submitted, event_id::map_answered, event_id::arena_published, event_id::arena_retired,
             event_id::unmap_submitted, event_id::unmap_answered, event_id::arena_unconfirmed, event_id::arena_settled,
             event_id::span_granted, event_id::span_released}) {}

 private:
  void see(sim::world& w, const sim::logged_event& e, event_id kind) override {
    const std::uint64_t* const f = e.fields;
    switch (kind) {
      case event_id::map_submitted: born(e, f[0]); break;
      case event_id::map_answered:
        if (f[3] == 0) {
          happened(w, e, f[0], map_failed{});
        } else {
          mapped(e, f[0], f[1]);
          happened(w, e, f[0], map_answered{});
        }
        break;
      case event_id::arena_published:
        of_region(w, e, f[1], published{f[5] != 0});
        if (f[5] != 0) of_region(w, e, f[1], began_empty{});
        break;
      case event_id::arena_retired: of_region(w, e, f[1], retired{f[4]}); break;
      case event_id::unmap_submitted: of_region(w, e, f[0], unmap_submitted{}); break;
      case event_id::unmap_answered:
        if (f[2] == 0) {
          if (machine* const m = find_region(e, f[0])) m->confirmed = true;
          of_region(w, e, f[0], unmap_confirmed{});
        } else if (f[2] == 1) {
          of_region(w, e, f[0], unmap_refused{});
        } else {
          of_region(w, e, f[0], unmap_unknown{});
        }
        break;
      case event_id::arena_unconfirmed: of_region(w, e, f[1], unconfirmed{}); break;
      case event_id::arena_settled: of_region(w, e, f[1], settled{f[3] != 0}); break;
      case event_id::span_granted:
        of_region(w, e, f[1], span_cut{});
        if (machine* const m = find_region(e, f[1])) ++m->live;
        break;
      case event_id::span_released:
        of_region(w, e, f[1], span_destroyed{});
        if (machine* const m = find_region(e, f[1]); m != nullptr && m->live != 0) --m->live;
        break;
      default: break;
    }
  }
};

}  // namespace

model& arena_lifecycle() {
  static arena_model one;
  return one;
}

}  // namespace holdfast::models
