// Streams with one thing wrong in what concerns the whole world: devices that write, pages, charges and steps at rest.
#include "lives.hpp"
#include "wrong.hpp"

#include <properties/invariants/looks.hpp>

namespace holdfast::sim::streams {

std::vector<wrong> wrong_world() {
  return {
      {"W-1", "a write that the device may not make",
       [](told& t) { t.device(hardware_event::dma_write, 50, 0, 64, 70, 30, 0); }},
      {"W-2", "pages back under a registration of nobody",
       [](told& t) {
         t.device(hardware_event::pages_owned, 50, mib).on_fiber(registration);
         t.device(hardware_event::nic_registered, 70, 50, 0, mib).device(hardware_event::pages_returned, 50, mib);
       }},
      {"W-3", "a write into somebody else's span",
       [](told& t) {
         build(t);
         t.device(hardware_event::dma_write, 50, 4096, 64, 70, 999, 1);
       }},
      {"W-4", "a transfer into an arena that was retired",
       [](told& t) {
         build(t);
         retire(t, 1).core(event_id::hold_taken, 9, 7, 1);
       }},
      {"W-5", "charged at rest",
       [](told& t) { t.core(event_id::ledger_opened, 1, mib).core(event_id::ledger_reserved, 1, 4096, 4096).rest(); }},
      {"W-6", "an operation without an end",
       [](told& t) { t.core(event_id::operation_accepted, 20, 100, 200, 5000, 0).rest(); }},
      {"W-6", "an unmap without an answer, and nothing in quarantine",
       [](told& t) {
         t.core(event_id::map_submitted, 5, mib).core(event_id::map_answered, 5, 7, mib, 1);
         t.core(event_id::unmap_submitted, 7, 7, 1).forgiven().rest();
       }},
      {"W-6", "a step without an end", [](told& t) { t.device(hardware_event::op_began, 1).rest(); }},
      {"W-7", "a shutdown that does not return",
       [](told& t) {
         open(t, {});
         invariants::told_shutdown(t.looking(), 0, -1);
         t.stuck();
       }},
      {"W-7", "a registration that is left and reported as gone",
       [](told& t) {
         build(t);
         start_shutdown(t);
         retire(t, 1).core(event_id::unmap_submitted, 7, 7, 1).core(event_id::shutdown_ended, 1, 1, 0, 0, 0, 0);
       }},
      {"W-9", "success for bytes that did not land",
       [](told& t) {
         build(t);
         start_get(t);
         t.device(hardware_event::driver_get_completed, 30, 0, 5000).core(event_id::waiter_told, 20, 1, 0, 5000);
       }},
      {"W-9", "a confirmed unmap that was not done",
       [](told& t) {
         build(t);
         retire(t);
         t.core(event_id::unmap_submitted, 7, 7, 1).core(event_id::unmap_answered, 7, 7, 0);
       }},
  };
}

}  // namespace holdfast::sim::streams
