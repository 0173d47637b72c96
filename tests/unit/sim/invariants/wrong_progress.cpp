// Streams with one thing wrong in progress, in the teardown, and in what a transport says of itself.
#include "lives.hpp"
#include "wrong.hpp"

#include <properties/invariants/looks.hpp>

namespace holdfast::sim::streams {

std::vector<wrong> wrong_progress() {
  return {
      {"TP-I5", "a GET posted by the application's thread",
       [](told& t) {
         t.on_fiber(progress).core(event_id::progress_state, 1, 0, 0);
         t.on_fiber(app).device(hardware_event::driver_get_posted, 30, 50, 0, 64, 1);
       }},
      {"TP-I5", "a map by the progress thread",
       [](told& t) { call(open_worker(t), progress, function::ucp_mem_map, 1); }},
      {"TP-I5", "a worker that two threads use",
       [](told& t) { call(open_worker(t), app, function::ucp_worker_progress, 1); }},
      {"TP-I5", "a key destroyed by a thread that has no worker",
       [](told& t) { call(open_worker(t), app, function::ucp_rkey_destroy, 1); }},
      {"TP-I7", "sleep with work queued", [](told& t) { t.core(event_id::progress_state, 1, 2, 1); }},
      {"TP-I7", "work that waited for a wake",
       [](told& t) {
         t.core(event_id::progress_state, 1, 2, 0).core(event_id::operation_accepted, 20, 100, 200, 64, 0);
         t.at(5).core(event_id::progress_woke, 1, 4);
       }},
      {"TP-I7", "work that lies in the queue when nothing can run any more",
       [](told& t) {
         t.core(event_id::progress_state, 1, 2, 0).core(event_id::operation_accepted, 20, 100, 200, 64, 0).stuck();
       }},
      {"TP-I8", "wakes with nothing to do",
       [](told& t) {
         for (int i = 0; i < 1200; ++i) t.core(event_id::progress_woke, 1, 1);
       }},
      {"TP-I15", "a submission that waits for a flood to end",
       [](told& t) {
         t.on_fiber(progress).core(event_id::progress_state, 1, 0, 0);
         invariants::told_transport(t.looking(), 0, 1, 0, 16);
         t.on_fiber(app).device(hardware_event::op_began, 1);
         t.core(event_id::operation_accepted, 20, 100, 200, 5000, 0).device(hardware_event::op_ended, 1, 1, 0);
         t.on_fiber(progress);
         for (int call = 0; call < 7; ++call)
           t.device(hardware_event::driver_call, static_cast<std::uint64_t>(function::ucp_worker_progress), 1);
       }},
      {"TP-I20", "a teardown that ends a nanosecond late",
       [](told& t) {
         t.core(event_id::transport_state, 1, 3);
         invariants::told_shutdown(t.looking(), 0, 10 * ms);
         t.at(10 * ms + 1).core(event_id::teardown_hung, 1, 0, 0);
       }},
      {"TP-I20", "a witness before the end",
       [](told& t) { t.core(event_id::progress_state, 1, 0, 0).core(event_id::witness_issued, 1, 0); }},
      {"TP-I20", "a second witness",
       [](told& t) { t.core(event_id::witness_issued, 1, 0).core(event_id::witness_issued, 1, 0); }},
      {"TP-I20", "a teardown without an end", [](told& t) { t.core(event_id::transport_state, 1, 3).rest(); }},
      {"TP-I20", "a witness with one of two workers",
       [](told& t) {
         call(open_worker(t), progress, function::ucp_worker_query, 2).core(event_id::progress_state, 1, 0, 0);
         t.device(hardware_event::driver_worker_destroyed, 1, 0).device(hardware_event::driver_context_closed, 1, 0);
         t.core(event_id::witness_issued, 1, 0);
       }},
      {"TP-I29", "an absent backend with a registration",
       [](told& t) {
         t.on_fiber(registration).device(hardware_event::nic_registered, 70, 50, 0, mib);
         t.core(event_id::transport_state, 1, 1);
       }},
      {"TP-I29", "an absent backend with a worker",
       [](told& t) { open_worker(t).core(event_id::transport_state, 1, 1); }},
      {"TP-I29", "a call of an absent backend",
       [](told& t) { call(t.core(event_id::transport_state, 1, 1), app, function::ucp_cleanup, 1); }},
      {"TP-I29", "a context that ends before its worker",
       [](told& t) {
         t.on_fiber(progress).device(hardware_event::driver_call,
                                     static_cast<std::uint64_t>(function::ucp_worker_query), 1);
         t.on_fiber(registration)
             .device(hardware_event::driver_call, static_cast<std::uint64_t>(function::ucp_cleanup), 1);
       }},
      {"TP-I30", "a call of the library under a lock",
       [](told& t) { t.under_a_lock([](told& locked) { call(locked, progress, function::ucp_worker_progress, 1); }); }},
      {"TP-I30", "a program that runs on the progress thread",
       [](told& t) {
         t.on_fiber(progress).core(event_id::progress_state, 1, 0, 0).device(hardware_event::op_began, 1);
       }},
      {"TP-I31", "a GET that is said to work and never did",
       [](told& t) { t.core(event_id::transport_capabilities, 1, 11301, 1 << 1, 0, 0); }},
      {"TP-I31", "another version than the library's",
       [](told& t) { t.core(event_id::transport_capabilities, 1, 11302, 0, 0, 0); }},
      {"TP-I31", "a GET inside its call that none was",
       [](told& t) { t.core(event_id::transport_capabilities, 1, 11301, 1 << 6, 0, 0); }},
      {"TP-I31", "a GET that is reported absent",
       [](told& t) {
         t.core(event_id::transport_capabilities, 1, 11301, 0, 0, 0)
             .core(event_id::operation_accepted, 20, 100, 200, 64, 0);
       }},
      {"TP-I31", "shared memory that is reported absent",
       [](told& t) {
         t.core(event_id::transport_capabilities, 1, 11301, 0, 0, 0).core(event_id::endpoint_state, 8, 3, 0, 1);
       }},
      {"TP-I32", "a lock that two processes use", [](told& t) { t.device(hardware_event::object_shared, 1, 0, 1); }},
      {"TP-I32", "a handle that two processes use",
       [](told& t) { t.device(hardware_event::driver_handle_foreign, 1, 0); }},
      {"TP-I32", "a context that two transports use",
       [](told& t) { call(open_worker(t), app, function::ucp_worker_create, 1).rest(); }},
  };
}

}  // namespace holdfast::sim::streams
