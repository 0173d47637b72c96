// Calls of the library: which thread uses which worker and context, and how they end.

#include <properties/invariants/books/lessons.hpp>

#include <sim/drivers/ucp_double.hpp>

namespace holdfast::invariants {

namespace {

using function = sim::ucp_double::function;

void worker_used(host_books& b, std::uint64_t worker, std::uint32_t fiber) {
  if (worker == 0) return;
  worker_record& one = b.workers[worker];
  if (one.fiber == no_fiber && !one.destroyed) {
    one.fiber = fiber;
    ++b.workers_open;
  } else if (one.fiber != fiber) {
    one.stranger = fiber;
  }
}

void worker_created(context_record& one, std::uint32_t fiber) noexcept {
  if (one.progress_fiber == no_fiber) one.progress_fiber = fiber;
  one.two_progress = one.two_progress || one.progress_fiber != fiber;
}

void memory_mapped(context_record& one, std::uint32_t fiber) noexcept {
  if (one.registration_fiber == no_fiber) one.registration_fiber = fiber;
  one.two_registration = one.two_registration || one.registration_fiber != fiber;
}

void called(world&, host_books& b, const logged_event& e) {
  const std::uint64_t object = e.fields[1];
  const auto what = static_cast<function>(e.fields[0]);
  if (what == function::ucp_worker_progress && e.fiber == b.progress_fiber) {
    ++b.progress_calls;
    b.unheard = false;
  }
  switch (what) {
    case function::ucp_worker_query:
    case function::ucp_worker_get_efd:
    case function::ucp_worker_arm:
    case function::ucp_worker_progress:
    case function::ucp_worker_set_am_recv_handler:
    case function::ucp_worker_get_address:
    case function::ucp_worker_destroy:
    case function::ucp_listener_create:
    case function::ucp_ep_create: worker_used(b, object, e.fiber); break;
    case function::ucp_worker_create: worker_created(b.contexts[object], e.fiber); break;
    case function::ucp_mem_map: memory_mapped(b.contexts[object], e.fiber); break;
    case function::ucp_ep_close_nbx: ++b.lanes[object].closes; break;
    case function::ucp_get_nbx: b.fibers[e.fiber].last_lane = object; break;
    default: break;
  }
}

void worker_destroyed(world&, host_books& b, const logged_event& e) {
  ++b.workers_destroyed;
  if (worker_record& gone = b.workers[e.fields[0]]; !gone.destroyed) {
    gone.destroyed = true;
    if (gone.fiber != no_fiber && b.workers_open != 0) --b.workers_open;
  }
  // A transport may have two; while one is left, nothing says which requests were whose.
  while (b.workers_open == 0 && !b.open_requests.empty()) {
    const std::uint64_t request = b.open_requests.back();
    b.requests[request].swept = true;
    b.close_request(request);
  }
}

void context_closed(world&, host_books& b, const logged_event&) {
  ++b.contexts_closed;
  if (b.contexts_closed < b.contexts.size()) return;
  for (std::size_t i = 0; i < b.registrations.size(); ++i) {
    registration_record& r = b.registrations.at(i);
    r.alive = false;
    b.discharge(r);
  }
}

}  // namespace

void add_library_lessons(lesson_table& table) {
  table.on(hardware_event::driver_call, called);
  table.on(hardware_event::driver_worker_destroyed, worker_destroyed);
  table.on(hardware_event::driver_context_closed, context_closed);
}

}  // namespace holdfast::invariants
