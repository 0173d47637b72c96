// Streams that leave a model: steps that the thing in question cannot take.
#include "lives.hpp"
#include "wrong.hpp"

namespace holdfast::sim::streams {

std::vector<wrong> wrong_models() {
  return {
      {"model connection", "an attempt that drains",
       [](told& t) { t.core(event_id::connection_state, 3, 0, 0, 0).core(event_id::connection_state, 3, 0, 0, 3); }},
      {"model endpoint", "an end without a close",
       [](told& t) { t.core(event_id::endpoint_state, 8, 3, 0, 0).core(event_id::endpoint_state, 8, 3, 4, 0); }},
      {"model operation", "a callback of what was not posted",
       [](told& t) {
         t.core(event_id::transport_state, 1, 0).core(event_id::operation_accepted, 20, 100, 200, 64, 2);
         t.core(event_id::operation_submitted, 20, 3).core(event_id::operation_ended, 20, 1, 0);
       }},
      {"model transport", "gone without a sweep",
       [](told& t) { t.core(event_id::transport_state, 1, 0).core(event_id::transport_state, 1, 6); }},
      {"model worker", "sleep without an arming",
       [](told& t) { t.core(event_id::progress_state, 1, 0, 0).core(event_id::progress_state, 1, 2, 0); }},
      {"model arena", "an unmap of an arena in service",
       [](told& t) {
         build(t);
         t.core(event_id::unmap_submitted, 7, 7, 1);
       }},
      {"model registration", "an answer to nothing",
       [](told& t) {
         t.device(hardware_event::pages_owned, 50, mib).core(event_id::block_allocated, 5, mib);
         t.core(event_id::map_answered, 5, 0, 0, 0);
       }},
      {"model reservation", "a reservation that is spent twice",
       [](told& t) {
         t.core(event_id::ledger_reserved, 1, 64, 64).core(event_id::ledger_reserved, 1, 32, 96);
         t.core(event_id::ledger_dropped, 1, 96, 0);
       }},
      {"model shutdown", "a pool that reports without a sweep",
       [](told& t) {
         open(t, {}).core(event_id::shutdown_started, 1, 1000).core(event_id::shutdown_step, 1, 4, 1000);
       }},
      {"model span", "a fate that becomes known of what was not in quarantine",
       [](told& t) {
         build(t);
         start_get(t);
         t.device(hardware_event::driver_get_completed, 30, 0, 0)
             .on_fiber(app)
             .core(event_id::span_discharged, 9, 7, 2);
       }},
  };
}

}  // namespace holdfast::sim::streams
