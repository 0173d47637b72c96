#include "lives.hpp"

namespace holdfast::sim::streams {

told& open(told& t, const opening& how) {
  return t.on_fiber(app).core(event_id::pool_opened, 1, how.reclaim_after_ns, how.retain, 5'000 * ms, how.retries,
                              how.pressure);
}

told& build(told& t, bool dedicated) {
  t.on_fiber(app).core(event_id::ledger_opened, 1, 4 * mib).core(event_id::ledger_reserved, 1, mib, mib);
  t.device(hardware_event::pages_owned, 50, mib).core(event_id::block_allocated, 5, mib);
  t.core(event_id::growth_claimed, 1, 5000)
      .core(event_id::growth_started, 1, mib, dedicated, 5000)
      .core(event_id::map_submitted, 5, mib);
  t.on_fiber(registration).device(hardware_event::nic_registered, 70, 50, 0, mib);
  t.core(event_id::map_answered, 5, 7, mib, 1).core(event_id::ledger_committed, 1, mib, mib);
  t.core(event_id::span_granted, 9, 7, 0, 2, 5000, 254);
  t.core(event_id::arena_published, 7, 7, mib, mib, dedicated, 0).core(event_id::growth_ended, 1, 7, 1, dedicated);
  return t.on_fiber(app);
}

told& start_get(told& t) {
  t.on_fiber(progress).core(event_id::transport_state, 1, 0).core(event_id::progress_state, 1, 0, 0);
  t.core(event_id::hello_accepted, 3, 100, 200, 1).core(event_id::connection_state, 3, 100, 200, 2);
  t.on_fiber(app).core(event_id::hold_taken, 9, 7, 1).core(event_id::operation_accepted, 20, 100, 200, 5000, 0);
  t.core(event_id::buffer_lent, 9, 20, 200);
  t.on_fiber(progress).core(event_id::operation_submitted, 20, 3);
  t.device(hardware_event::driver_get_posted, 30, 50, 0, 5000, 1).core(event_id::operation_posted, 20);
  return t;
}

told& finish_get(told& t) {
  t.device(hardware_event::dma_write, 50, 0, 5000, 70, 30, 1);
  t.device(hardware_event::driver_get_completed, 30, 0, 5000).device(hardware_event::driver_callback, 30, 0);
  t.core(event_id::operation_ended, 20, 1, 0).core(event_id::hold_dropped, 9, 7, 0);
  t.core(event_id::buffer_returned, 9, 20, 1).core(event_id::waiter_told, 20, 1, 0, 5000);
  return t.on_fiber(app);
}

told& start_shutdown(told& t, std::int64_t deadline_ns) {
  t.on_fiber(app).core(event_id::shutdown_started, 1, deadline_ns).core(event_id::shutdown_step, 1, 0, deadline_ns);
  t.core(event_id::gate_closed, 2, 0).core(event_id::gate_drained, 2);
  t.core(event_id::gate_closed, 3, 0).core(event_id::gate_drained, 3).core(event_id::shutdown_step, 1, 1, deadline_ns);
  return t.core(event_id::shutdown_step, 1, 2, deadline_ns).core(event_id::shutdown_step, 1, 3, deadline_ns);
}

told& retire(told& t, std::uint64_t live) { return t.core(event_id::arena_retired, 7, 7, live, 0, 1); }

told& give_back(told& t) { return t.on_fiber(app).core(event_id::span_released, 9, 7, 0, 2, 256); }

told& reclaim(told& t) { return t.core(event_id::arena_retired, 7, 7, 0, 0, 0); }

told& sweep(told& t, std::uint64_t mode) {
  return t.on_fiber(app).core(event_id::reclaim_began, 1, mode, 0).core(event_id::reclaim_ended, 1, mode, 0, 0);
}

told& unmap(told& t) {
  t.core(event_id::unmap_submitted, 7, 7, 1);
  t.on_fiber(registration)
      .device(hardware_event::nic_deregistered, 70, 50, mib)
      .core(event_id::unmap_answered, 7, 7, 0);
  return t;
}

told& settle(told& t) {
  t.core(event_id::arena_settled, 7, 7, mib, 0).core(event_id::ledger_released, 1, mib, 0);
  t.device(hardware_event::pages_returned, 50, mib).core(event_id::block_freed, 5, mib);
  return t.on_fiber(app);
}

told& admit(told& t) {
  t.core(event_id::quarantine_entered, 1, 2, 9, 512, 4, 1 << 2);
  return t.core(event_id::quarantine_awaits, 1, 2, 9, 20, 0, 0);
}

told& call(told& t, std::uint32_t fiber, function what, std::uint64_t object) {
  return t.on_fiber(fiber).device(hardware_event::driver_call, what, object);
}

told& open_worker(told& t) {
  return call(call(t, progress, function::ucp_worker_create, 1), progress, function::ucp_worker_query, 1);
}

told& complete(told& t) { return t.core(event_id::quarantine_left, 1, 2, 9, 512, 2, 20); }

told& end_shutdown(told& t) {
  return t.on_fiber(app).core(event_id::shutdown_step, 1, 4, 0).core(event_id::shutdown_ended, 1, 1, 0, 0, 0, 0);
}

}  // namespace holdfast::sim::streams
