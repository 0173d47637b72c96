// Streams with one thing wrong in operations: their exits, their waiters, their holds.
#include "lives.hpp"
#include "wrong.hpp"

#include <properties/invariants/looks.hpp>

namespace holdfast::sim::streams {

std::vector<wrong> wrong_operations() {
  return {
      {"TP-I1", "two exits",
       [](told& t) {
         build(t);
         start_get(t);
         finish_get(t);
         t.core(event_id::operation_ended, 20, 3, 0);
       }},
      {"TP-I1", "a record that survives the teardown",
       [](told& t) {
         t.core(event_id::operation_accepted, 20, 100, 200, 5000, 0).core(event_id::witness_issued, 1, 0);
       }},
      {"TP-I1", "a call that nobody answers",
       [](told& t) {
         t.core(event_id::transport_state, 1, 6);
         invariants::told_call(t.looking(), 0, true);
         t.stuck();
       }},
      {"TP-I1", "a callback after the exit",
       [](told& t) {
         build(t);
         start_get(t);
         finish_get(t);
         t.on_fiber(progress).device(hardware_event::driver_callback, 30, 0);
       }},
      {"TP-I2", "a waiter told twice",
       [](told& t) {
         build(t);
         start_get(t);
         finish_get(t);
         t.core(event_id::waiter_told, 20, 0, 9, 0);
       }},
      {"TP-I3", "a hold dropped under a posted GET",
       [](told& t) {
         build(t);
         start_get(t);
         t.core(event_id::hold_dropped, 9, 7, 0);
       }},
      {"TP-I3", "a record that ends while the library has its request",
       [](told& t) {
         build(open_worker(t));
         start_get(t);
         open_worker(t).core(event_id::operation_orphaned, 20, 3, 5000).core(event_id::operation_ended, 20, 1, 0);
       }},
      {"TP-I4", "a sweep before the destruction", [](told& t) { t.core(event_id::table_swept, 1, 1); }},
      {"TP-I4", "a sweep after the first of two destructions",
       [](told& t) {
         call(open_worker(t), progress, function::ucp_worker_query, 2);
         t.device(hardware_event::driver_worker_destroyed, 1, 0).core(event_id::table_swept, 1, 1);
       }},
      {"TP-I14", "a copy over the limit", [](told& t) { t.core(event_id::message_copied, 3, 65, 64); }},
  };
}

}  // namespace holdfast::sim::streams
