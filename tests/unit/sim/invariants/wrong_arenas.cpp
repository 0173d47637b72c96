// Streams with one thing wrong in blocks, regions and arenas: maps, unmaps, growths, publications, settlements.
#include "lives.hpp"
#include "wrong.hpp"

#include <properties/invariants/looks.hpp>

namespace holdfast::sim::streams {

std::vector<wrong> wrong_arenas() {
  return {
      {"PM-I1", "pages back while a map may still come",
       [](told& t) {
         t.device(hardware_event::pages_owned, 50, mib).core(event_id::block_allocated, 5, mib);
         t.core(event_id::map_submitted, 5, mib).device(hardware_event::pages_returned, 50, mib);
       }},
      {"PM-I2", "a map over pages that are gone",
       [](told& t) {
         t.device(hardware_event::pages_owned, 50, mib).core(event_id::block_allocated, 5, mib);
         t.core(event_id::ledger_reserved, 1, mib, mib).device(hardware_event::pages_returned, 50, mib);
         t.device(hardware_event::nic_registered, 70, 50, 0, mib);
       }},
      {"PM-I10", "a second retirement",
       [](told& t) {
         build(t);
         retire(t);
         retire(t);
       }},
      {"PM-I10", "an arena that was built and is nowhere", [](told& t) { t.core(event_id::growth_ended, 1, 8, 1, 0); }},
      {"PM-I11", "a second unmap",
       [](told& t) {
         build(t);
         retire(t);
         t.core(event_id::unmap_submitted, 7, 7, 1).core(event_id::unmap_submitted, 7, 7, 2);
       }},
      {"PM-I16", "two growths at once",
       [](told& t) {
         t.core(event_id::growth_started, 1, mib, 0, 5000).core(event_id::growth_started, 1, mib, 0, 5000);
       }},
      {"PM-I16", "a growth although there was room",
       [](told& t) {
         build(t);
         t.core(event_id::growth_claimed, 1, 5000).core(event_id::growth_started, 1, mib, 0, 5000);
       }},
      {"PM-I16", "a pooled arena smaller than its turn",
       [](told& t) {
         open(t, {});
         invariants::told_arena_sizes(t.looking(), 0, mib / 2, 2 * mib, 4096);
         t.core(event_id::growth_claimed, 1, 5000).core(event_id::growth_started, 1, 8192, 0, 5000);
       }},
      {"PM-I16", "a pooled arena above the ceiling",
       [](told& t) {
         open(t, {});
         invariants::told_arena_sizes(t.looking(), 0, mib / 2, mib / 2, 4096);
         t.core(event_id::growth_claimed, 1, 5000).core(event_id::growth_started, 1, mib, 0, 5000);
       }},
      {"PM-I17", "try_alloc maps",
       [](told& t) { t.core(event_id::try_alloc_began, 1, 64).core(event_id::growth_started, 1, mib, 0, 5000); }},
      {"PM-I17", "try_alloc fetches",
       [](told& t) {
         t.core(event_id::try_alloc_began, 1, 64).core(event_id::operation_accepted, 20, 100, 200, 64, 0);
       }},
      {"PM-I18", "a block that is never given back",
       [](told& t) {
         build(t);
         t.core(event_id::span_released, 9, 7, 0, 2, 256);
         retire(t);
         unmap(t);
         t.core(event_id::arena_settled, 7, 7, mib, 0).core(event_id::ledger_released, 1, mib, 0).rest();
       }},
      {"PM-I30", "a generation twice",
       [](told& t) {
         build(t);
         retire(t);
         unmap(t);
         t.core(event_id::map_submitted, 6, mib).core(event_id::map_answered, 6, 7, mib, 1);
       }},
      {"PM-I30", "a reference to an arena that is out of service",
       [](told& t) {
         build(t);
         retire(t, 1).core(event_id::reference_made, 9, 7, 0, 5000, 1);
       }},
      {"PM-I31", "an arena published before its request was cut",
       [](told& t) {
         t.core(event_id::ledger_reserved, 1, mib, mib).device(hardware_event::pages_owned, 50, mib);
         t.core(event_id::block_allocated, 5, mib).core(event_id::map_submitted, 5, mib).on_fiber(registration);
         t.device(hardware_event::nic_registered, 70, 50, 0, mib).core(event_id::map_answered, 5, 7, mib, 1);
         t.core(event_id::ledger_committed, 1, mib, mib).core(event_id::arena_published, 7, 7, mib, mib, 0, 0);
       }},
      {"PM-I46", "a refused unmap that is asked for too often",
       [](told& t) {
         build(open(t, {.retries = 1}));
         retire(t, 1);
         for (int attempt = 1; attempt <= 3; ++attempt)
           t.core(event_id::unmap_submitted, 7, 7, attempt).core(event_id::unmap_answered, 7, 7, 1);
       }},
      {"PM-I46", "an unmap that is asked for again and was not refused",
       [](told& t) {
         build(t);
         retire(t, 1).core(event_id::unmap_submitted, 7, 7, 1).core(event_id::unmap_answered, 7, 7, 2);
         t.core(event_id::unmap_retrying, 7, 7, 2);
       }},
      {"PM-I46", "an unmap of an id that no map gave", [](told& t) { t.core(event_id::unmap_submitted, 8, 8, 1); }},
      {"PM-I47", "an adopted arena with a span",
       [](told& t) {
         t.core(event_id::ledger_reserved, 1, mib, mib).device(hardware_event::pages_owned, 50, mib);
         t.core(event_id::block_allocated, 5, mib).core(event_id::map_submitted, 5, mib).on_fiber(registration);
         t.device(hardware_event::nic_registered, 70, 50, 0, mib).core(event_id::map_answered, 5, 7, mib, 1);
         t.core(event_id::ledger_committed, 1, mib, mib).core(event_id::span_granted, 9, 7, 0, 2, 5000, 254);
         t.core(event_id::arena_published, 7, 7, mib, mib, 0, 1);
       }},
      {"PM-I53", "a map on the progress thread",
       [](told& t) {
         t.on_fiber(progress).core(event_id::progress_state, 1, 0, 0);
         t.device(hardware_event::nic_registered, 70, 50, 0, mib);
       }},
      {"TP-I26", "pages unmapped that a late reader may ask for",
       [](told& t) {
         build(open_worker(t));
         give_back(t);
         start_shutdown(t);
         retire(t);
         unmap(t).core(event_id::arena_settled, 7, 7, mib, 0).core(event_id::ledger_released, 1, mib, 0);
         t.device(hardware_event::pages_returned, 50, mib);
       }},
  };
}

}  // namespace holdfast::sim::streams
