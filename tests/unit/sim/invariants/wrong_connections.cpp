// Streams with one thing wrong in connections, endpoints and keys.
#include "lives.hpp"
#include "wrong.hpp"

#include <properties/invariants/looks.hpp>

namespace holdfast::sim::streams {

std::vector<wrong> wrong_connections() {
  return {
      {"TP-I6", "a key destroyed under an operation",
       [](told& t) {
         t.core(event_id::key_state, 4, 3, 7, 0).core(event_id::key_used, 4, 20).core(event_id::key_state, 4, 3, 7, 2);
       }},
      {"TP-I6", "an endpoint closed before its idle key",
       [](told& t) {
         t.core(event_id::endpoint_state, 8, 3, 0, 0)
             .core(event_id::key_state, 4, 3, 7, 0)
             .core(event_id::endpoint_state, 8, 3, 2, 0);
       }},
      {"TP-I6", "an endpoint used after its end",
       [](told& t) {
         t.core(event_id::endpoint_state, 8, 3, 0, 0).core(event_id::endpoint_state, 8, 3, 3, 0);
         t.core(event_id::operation_accepted, 20, 100, 200, 64, 0).core(event_id::operation_submitted, 20, 3);
       }},
      {"TP-I6", "a GET on an endpoint of the library that was closed",
       [](told& t) {
         call(call(open_worker(t), progress, function::ucp_ep_close_nbx, 4), progress, function::ucp_get_nbx, 4);
       }},
      {"TP-I6", "an endpoint closed a second time",
       [](told& t) {
         t.core(event_id::endpoint_state, 8, 3, 0, 0).core(event_id::endpoint_state, 8, 3, 2, 0);
         t.core(event_id::endpoint_state, 8, 3, 3, 0);
       }},
      {"TP-I9", "ready without a hello", [](told& t) { t.core(event_id::connection_state, 3, 100, 200, 2); }},
      {"TP-I10", "an operation for another life",
       [](told& t) {
         t.core(event_id::hello_accepted, 3, 100, 201, 1).core(event_id::operation_accepted, 20, 100, 200, 64, 0);
         t.core(event_id::operation_submitted, 20, 3);
       }},
      {"TP-I11", "two ready connections to one peer",
       [](told& t) {
         for (const int connection : {3, 4})
           t.core(event_id::hello_accepted, connection, 100, 200, 1)
               .core(event_id::connection_state, connection, 100, 200, 2);
       }},
      {"TP-I11", "two that met and have no connection",
       [](told& t) { invariants::look_at_meeting(t.looking(), 0, false); }},
      {"TP-I11", "an incarnation that was declared dead",
       [](told& t) {
         t.core(event_id::peer_declared_dead, 100, 200, 0).core(event_id::hello_accepted, 3, 100, 200, 1);
         t.core(event_id::connection_state, 3, 100, 200, 2);
       }},
      {"TP-I12", "submitted after the loss",
       [](told& t) {
         t.core(event_id::hello_accepted, 3, 100, 200, 1).core(event_id::connection_state, 3, 100, 200, 4);
         t.core(event_id::operation_accepted, 20, 100, 200, 64, 0).core(event_id::operation_submitted, 20, 3);
       }},
      {"TP-I18", "an attempt that lasts an iteration and a nanosecond too long",
       [](told& t) {
         t.on_fiber(progress).core(event_id::progress_state, 1, 0, 0);
         invariants::told_transport(t.looking(), 0, 16, 10 * ms, 16);
         t.core(event_id::connection_state, 3, 0, 0, 0).at(11 * ms + 1).core(event_id::connection_state, 3, 0, 0, 7);
       }},
      {"TP-I18", "an endpoint through memory that outlives its connection",
       [](told& t) {
         t.core(event_id::endpoint_state, 8, 3, 0, 0).core(event_id::endpoint_state, 9, 3, 0, 1);
         t.core(event_id::endpoint_state, 8, 3, 3, 0);
       }},
      {"TP-I18", "a transfer that is forgotten on a parked endpoint",
       [](told& t) {
         build(t).device(hardware_event::driver_lane_shared, 1).core(event_id::endpoint_state, 8, 3, 0, 1);
         start_get(t).core(event_id::endpoint_state, 8, 3, 5, 1);
       }},
      {"TP-I18", "a transfer that waits for a closed connection",
       [](told& t) {
         build(t);
         start_get(t).core(event_id::connection_state, 3, 100, 200, 6);
       }},
      {"TP-I18", "a transfer that waits for a lost peer for ever",
       [](told& t) {
         build(t);
         start_get(t).core(event_id::connection_state, 3, 100, 200, 4).stuck();
       }},
      {"TP-I18", "an attempt without an end", [](told& t) { t.core(event_id::connection_state, 3, 0, 0, 0).rest(); }},
      {"TP-I18", "an orphan's waiter that was not told",
       [](told& t) {
         build(t);
         start_get(t)
             .core(event_id::operation_orphaned, 20, 3, 5000)
             .device(hardware_event::driver_get_completed, 30, 0, 5000);
         t.device(hardware_event::driver_callback, 30, 0).core(event_id::operation_ended, 20, 1, 0);
         t.core(event_id::hold_dropped, 9, 7, 0).core(event_id::buffer_returned, 9, 20, 1);
         give_back(t).forgiven().rest();
       }},
      {"TP-I19", "a loss reported twice",
       [](told& t) { t.core(event_id::peer_lost, 100, 200, 3, 0, 0).core(event_id::peer_lost, 100, 200, 3, 0, 0); }},
      {"TP-I19", "the loss of a peer whose other connection is known",
       [](told& t) {
         t.core(event_id::hello_accepted, 3, 100, 200, 1).core(event_id::connection_state, 3, 100, 200, 2);
         t.core(event_id::endpoint_state, 8, 3, 0, 0).core(event_id::endpoint_state, 8, 3, 1, 0);
         t.core(event_id::connection_state, 3, 100, 200, 4).core(event_id::peer_lost, 100, 200, 3, 0, 0);
         t.core(event_id::hello_accepted, 4, 100, 200, 1).core(event_id::connection_state, 4, 100, 200, 2);
       }},
      {"TP-I19", "a failure told twice",
       [](told& t) { t.core(event_id::transport_failed, 1).core(event_id::transport_failed, 1); }},
      {"TP-I27", "a connection that serves a revoked peer",
       [](told& t) {
         t.core(event_id::hello_accepted, 3, 100, 200, 1).core(event_id::connection_state, 3, 100, 200, 2);
         t.core(event_id::peer_revoked, 100, 200, 1, 0, 0);
       }},
      {"TP-I27", "a revocation by flush that says that reads stop",
       [](told& t) {
         t.core(event_id::hello_accepted, 3, 100, 200, 1).core(event_id::connection_state, 3, 100, 200, 5);
         t.core(event_id::endpoint_state, 8, 3, 0, 0).core(event_id::endpoint_state, 8, 3, 2, 0);
         t.core(event_id::peer_revoked, 100, 200, 1, 0, 1);
       }},
      {"TP-D53", "a GET that waits for nobody",
       [](told& t) {
         t.core(event_id::hello_accepted, 3, 100, 200, 1);
         t.core(event_id::operation_accepted, 20, 100, 200, 64, 0).core(event_id::operation_waits, 20, 3);
       }},
      {"TP-D53", "a GET that overtakes another",
       [](told& t) {
         t.core(event_id::hello_accepted, 3, 100, 200, 1);
         t.core(event_id::operation_accepted, 20, 100, 200, 64, 0).core(event_id::operation_submitted, 20, 3);
         t.core(event_id::operation_accepted, 21, 100, 200, 64, 0).core(event_id::operation_waits, 21, 3);
         t.core(event_id::operation_accepted, 22, 100, 200, 64, 0).core(event_id::operation_waits, 22, 3);
         t.core(event_id::operation_submitted, 22, 3);
       }},
      {"TP-D53", "a turn that nobody takes",
       [](told& t) {
         t.core(event_id::hello_accepted, 3, 100, 200, 1);
         t.core(event_id::operation_accepted, 20, 100, 200, 64, 0).core(event_id::operation_submitted, 20, 3);
         t.core(event_id::operation_accepted, 21, 100, 200, 64, 0).core(event_id::operation_waits, 21, 3);
         t.core(event_id::operation_ended, 20, 1, 0).on_fiber(progress).core(event_id::progress_state, 1, 2, 0);
       }},
      {"TP-D53", "a GET before what woke the thread was heard",
       [](told& t) {
         open_worker(t).on_fiber(progress).core(event_id::progress_state, 1, 2, 0).core(event_id::progress_woke, 1, 3);
         call(t, progress, function::ucp_get_nbx, 1);
       }},
      {"TP-D52", "an endpoint of an ended life that the next takes over",
       [](told& t) {
         t.core(event_id::hello_accepted, 3, 100, 200, 1).core(event_id::endpoint_state, 8, 3, 0, 1);
         t.core(event_id::endpoint_state, 8, 3, 5, 1).core(event_id::hello_accepted, 4, 100, 201, 1);
         t.core(event_id::endpoint_state, 8, 4, 0, 1);
       }},
      {"TP-D52", "an endpoint beside one that is free",
       [](told& t) {
         t.core(event_id::hello_accepted, 3, 100, 200, 1).core(event_id::endpoint_state, 8, 3, 0, 1);
         t.core(event_id::endpoint_state, 8, 3, 5, 1).core(event_id::hello_accepted, 4, 100, 200, 1);
         t.core(event_id::endpoint_state, 9, 4, 0, 1);
       }},
      {"TP-D52", "more endpoints than four for each connection",
       [](told& t) {
         t.core(event_id::hello_accepted, 3, 100, 200, 1);
         invariants::told_transport(t.looking(), 0, 16, 10 * ms, 1);
         for (std::uint64_t i = 0; i < 5; ++i) t.core(event_id::endpoint_state, 8 + i, 3, 0, 1);
       }},
  };
}

}  // namespace holdfast::sim::streams
