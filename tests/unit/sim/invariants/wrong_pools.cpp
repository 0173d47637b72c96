// Streams with one thing wrong in reclamation and in the shutdown of a pool.
#include "lives.hpp"
#include "wrong.hpp"

namespace holdfast::sim::streams {

std::vector<wrong> wrong_pools() {
  return {
      {"PM-I12", "an arena reclaimed under a span",
       [](told& t) {
         build(t);
         reclaim(t);
       }},
      {"PM-I12", "a grant between the sweep and its unmap",
       [](told& t) {
         build(t);
         give_back(t);
         reclaim(t).core(event_id::span_granted, 10, 7, 0, 1, 64, 255).forgiven();
         t.core(event_id::unmap_submitted, 7, 7, 1);
       }},
      {"PM-I13", "an arena reclaimed too early",
       [](told& t) {
         build(open(t, {.reclaim_after_ns = 20 * ms}));
         give_back(t);
         reclaim(t.at(20 * ms - 1));
       }},
      {"PM-I13", "an arena reclaimed that was to stay warm",
       [](told& t) {
         build(open(t, {.reclaim_after_ns = 20 * ms, .retain = 1}));
         give_back(t);
         reclaim(t.at(30 * ms));
       }},
      {"PM-I14", "an arena reclaimed that may idle for ever",
       [](told& t) {
         build(open(t, {}));
         give_back(t);
         reclaim(t);
       }},
      {"PM-I14", "a sweep under pressure that nobody was refused for", [](told& t) { sweep(open(t, {}), 2); }},
      {"PM-I15", "a grant from somebody's own arena",
       [](told& t) {
         build(open(t, {}), true);
         t.core(event_id::span_granted, 10, 7, 2, 1, 64, 253);
       }},
      {"PM-I15", "a sweep that passes an empty dedicated arena by",
       [](told& t) {
         build(open(t, {}), true);
         give_back(t);
         sweep(t);
       }},
      {"PM-I15", "a dedicated arena whose unmap waits",
       [](told& t) {
         build(open(t, {}), true);
         give_back(t);
         reclaim(t).at(1).core(event_id::unmap_submitted, 7, 7, 1);
       }},
      {"PM-I15", "a reclaimed arena that is never unmapped",
       [](told& t) {
         t.core(event_id::arena_published, 7, 7, mib, 0, 1, 1).forgiven();
         reclaim(t).rest();
       }},
      {"PM-I20", "force without a witness", [](told& t) { t.core(event_id::forced_release, 1, 1, 0, 0); }},
      {"PM-I20", "force with the witness of another transport",
       [](told& t) { t.core(event_id::witness_issued, 1, 0).core(event_id::forced_release, 1, 2, 0, 0); }},
      {"PM-I21", "a late shutdown",
       [](told& t) { start_shutdown(t, 1000).at(1001).core(event_id::shutdown_ended, 1, 0, 0, 0, 0, 0); }},
      {"PM-I21", "a shutdown that nobody ends", [](told& t) { start_shutdown(t).stuck(); }},
      {"PM-I21", "a drain that nobody wakes",
       [](told& t) { t.core(event_id::gate_closed, 1, 1).device(hardware_event::op_began, 1).stuck(); }},
      {"PM-I22", "an unmap under a GET",
       [](told& t) {
         build(t);
         start_get(t);
         start_shutdown(t);
         retire(t, 1);
         t.core(event_id::unmap_submitted, 7, 7, 1);
       }},
      {"PM-I23", "a shutdown that waits for a buffer",
       [](told& t) {
         build(t);
         start_shutdown(t);
         retire(t, 1);
         t.at(500).core(event_id::unmap_submitted, 7, 7, 1);
       }},
      {"PM-I23", "a shutdown that waits for a buffer for ever",
       [](told& t) {
         build(t);
         start_shutdown(t);
         retire(t, 1).stuck();
       }},
      {"PM-I24", "a growth after the drain",
       [](told& t) {
         start_shutdown(t);
         build(t);
       }},
      {"PM-I24", "a GET after the drain",
       [](told& t) {
         build(t);
         start_shutdown(t);
         t.core(event_id::buffer_lent, 9, 0, 0);
       }},
      {"PM-I24", "an arena published after the sweep",
       [](told& t) {
         build(t);
         t.core(event_id::ledger_reserved, 1, mib, 2 * mib).device(hardware_event::pages_owned, 60, mib);
         t.core(event_id::block_allocated, 6, mib).core(event_id::map_submitted, 6, mib);
         start_shutdown(t).on_fiber(registration).device(hardware_event::nic_registered, 80, 60, 0, mib);
         t.core(event_id::map_answered, 6, 8, mib, 1).core(event_id::ledger_committed, 1, mib, 2 * mib);
         t.core(event_id::arena_published, 8, 8, mib, mib, 0, 1);
       }},
      {"PM-I38", "a sweep that passes an old arena by",
       [](told& t) {
         build(open(t, {.reclaim_after_ns = 20 * ms}));
         give_back(t);
         sweep(t.at(40 * ms + 1));
       }},
      {"PM-I38", "an arena that stayed until the shutdown",
       [](told& t) {
         build(open(t, {.reclaim_after_ns = 4 * ms}));
         give_back(t);
         start_shutdown(t.at(24 * ms + 1), 100 * ms);
         retire(t);
       }},
      {"PM-I39", "a swept arena that nobody counts",
       [](told& t) {
         build(t);
         start_shutdown(t);
         retire(t, 1);
         t.core(event_id::shutdown_ended, 1, 1, 0, 0, 0, 0);
       }},
      {"PM-I43", "a refusal without a sweep",
       [](told& t) { open(t, {}).core(event_id::alloc_refused, 1, 0, 5000, over_budget); }},
      {"PM-I43", "a refusal after somebody else's sweep",
       [](told& t) {
         sweep(open(t, {}).core(event_id::ledger_refused, 1, 5000, 0, 4 * mib), 2)
             .core(event_id::pressure_relieved, 1, 1, 0);
         for (int i = 0; i < 2; ++i) t.core(event_id::alloc_refused, 1, 1, 5000, over_budget);
       }},
      {"PM-I43", "a relief without a sweep",
       [](told& t) {
         open(t, {}).core(event_id::pressure_relieved, 1, 1, 0).core(event_id::alloc_refused, 1, 1, 5000, over_budget);
       }},
  };
}

}  // namespace holdfast::sim::streams
