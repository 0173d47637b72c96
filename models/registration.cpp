// The lifecycle of a registration and of the pages under it, after the tables of spec/pinned-memory 4.1 and 6.2.
//
// Known by its block. What the page calls `Pinned` is three states here, because what may be submitted differs: nothing
// was asked for, an unmap was asked for, its answer proves nothing. The page also lets a block leak while a request for it
// is under way; here the request keeps the block until its answer (the page's note), so that a leak there is as wrong as a
// page that goes back.

#include <models/machine.hpp>

namespace holdfast::models {

namespace {

namespace mpl = boost::mpl;
using boost::msm::front::none;

HOLDFAST_MODEL_EVENT(map_submitted, "map submitted");
HOLDFAST_MODEL_EVENT(map_ok, "map ok");
HOLDFAST_MODEL_EVENT(map_failed, "map failed");
HOLDFAST_MODEL_EVENT(unmap_submitted, "unmap submitted");
HOLDFAST_MODEL_EVENT(confirmed, "unmap confirmed");
HOLDFAST_MODEL_EVENT(refused, "unmap refused");
HOLDFAST_MODEL_EVENT(unknown, "unmap unknown");
HOLDFAST_MODEL_EVENT(witnessed, "witness presented");
HOLDFAST_MODEL_EVENT(freed, "pages freed");
HOLDFAST_MODEL_EVENT(leaked, "pages leaked");

HOLDFAST_MODEL_STATE(in_private, "Private");
HOLDFAST_MODEL_STATE(mapping, "Mapping");
HOLDFAST_MODEL_STATE(pinned, "Pinned");
HOLDFAST_MODEL_STATE(unmapping, "Unmapping");
HOLDFAST_MODEL_STATE(of_unknown_fate, "Unknown");
HOLDFAST_MODEL_STATE(released, "Released");
HOLDFAST_MODEL_STATE(gone, "Freed");
HOLDFAST_MODEL_STATE(lost, "Leaked");

struct registration_machine : front_end<registration_machine> {
  using initial_state = in_private;
  // clang-format off
  struct transition_table
      : mpl::vector<
            row<in_private, map_submitted, mapping>,
            row<in_private, freed, gone>,
            row<mapping, map_ok, pinned>,
            row<mapping, map_failed, in_private>,
            row<pinned, unmap_submitted, unmapping>,
            row<pinned, witnessed, released>,
            row<pinned, leaked, lost>,
            row<unmapping, confirmed, released>,
            row<unmapping, refused, pinned>,
            row<unmapping, unknown, of_unknown_fate>,
            row<unmapping, witnessed, released>,
            row<of_unknown_fate, witnessed, released>,
            row<of_unknown_fate, leaked, lost>,
            // An answer and the witness may come at once: one of them settles, and the other changes nothing.
            row<released, witnessed, none>,
            row<released, confirmed, none>,
            row<released, unknown, none>,
            row<released, freed, gone>,
            // The witness did not end the writes of a lost transfer, or the address could not be kept back.
            row<released, leaked, lost>,
            row<gone, confirmed, none>,
            row<gone, unknown, none>> {};
  // clang-format on
};

class registration_model final : public lifecycle_of_regions<registration_machine, in_private> {
 public:
  registration_model()
      : lifecycle_of_regions(
            "registration", "spec/pinned-memory 4.1 and 6.2",
            "a registration is asked for, given back and forgotten once, and its pages go only when it is gone",
            {event_id::block_allocated, event_id::map_submitted, event_id::map_answered, event_id::unmap_submitted,
             event_id::unmap_answered, event_id::arena_settled, event_id::block_freed, event_id::block_leaked}) {}

 private:
  void see(sim::world& w, const sim::logged_event& e, event_id kind) override {
    const std::uint64_t* const f = e.fields;
    switch (kind) {
      case event_id::block_allocated: born(e, f[0]); break;
      case event_id::map_submitted: happened(w, e, f[0], map_submitted{}); break;
      case event_id::map_answered:
        if (f[3] == 0) {
          happened(w, e, f[0], map_failed{});
        } else {
          mapped(e, f[0], f[1]);
          happened(w, e, f[0], map_ok{});
        }
        break;
      case event_id::unmap_submitted: of_region(w, e, f[0], unmap_submitted{}); break;
      case event_id::unmap_answered:
        if (f[2] == 0)
          of_region(w, e, f[0], confirmed{});
        else if (f[2] == 1)
          of_region(w, e, f[0], refused{});
        else
          of_region(w, e, f[0], unknown{});
        break;
      case event_id::arena_settled:
        if (f[3] != 0) of_region(w, e, f[1], witnessed{});
        break;
      case event_id::block_freed: happened(w, e, f[0], freed{}); break;
      case event_id::block_leaked: happened(w, e, f[0], leaked{}); break;
      default: break;
    }
  }
};

}  // namespace

model& registration_lifecycle() {
  static registration_model one;
  return one;
}

}  // namespace holdfast::models
