// Operations, their requests in the library, and what programs and devices do meanwhile.

#include <properties/invariants/books/lessons.hpp>

#include <algorithm>

namespace holdfast::invariants {

namespace {

void accepted(world& w, host_books& b, const logged_event& e) {
  const std::uint64_t* const f = e.fields;
  operation_record& o = b.operations[f[0]];
  ++o.accepted;
  o.worker_id = f[1];
  o.incarnation = f[2];
  o.bytes = f[3];
  o.kind = f[4];
  o.accepted_ns = e.time_ns;
  o.accepted_stalled_ns = stalled_ns(w, e.host);
  o.accepted_fiber = e.fiber;
  b.queued.push_back(f[0]);
  if (f[4] != operation_kind::get) return;
  std::uint64_t& held = b.fibers[e.fiber].held_span;
  if (span_record* const s = held != none ? b.spans.find(held) : nullptr) {
    s->operation = f[0];
    o.span = held;
  }
  held = none;
}

void waits(world&, host_books& b, const logged_event& e) {
  b.worked = true;
  b.leave_queue(e.fields[0]);
  b.operations[e.fields[0]].connection = e.fields[1];
  b.connections[e.fields[1]].waiting.push_back(e.fields[0]);
}

/// It waits no more. How many wait before it.
std::uint64_t leave_line(connection_record& c, std::uint64_t operation) {
  const auto at = std::ranges::find(c.waiting, operation);
  const auto before = static_cast<std::uint64_t>(at - c.waiting.begin());
  if (at != c.waiting.end()) c.waiting.erase(at);
  return before;
}

void submitted(world&, host_books& b, const logged_event& e) {
  operation_record& o = b.operations[e.fields[0]];
  ++o.submitted;
  o.connection = e.fields[1];
  if (connection_record* const c = b.connections.find(e.fields[1]); c != nullptr && o.kind == operation_kind::get) {
    ++c->gets_out;
    o.overtook = leave_line(*c, e.fields[0]);
  }
  b.worked = true;
  b.fibers[e.fiber].operation = e.fields[0];
  b.leave_queue(e.fields[0]);
}

void orphaned(world&, host_books& b, const logged_event& e) { ++b.operations[e.fields[0]].orphaned; }

void abandoned(world&, host_books& b, const logged_event& e) {
  ++b.operations[e.fields[0]].abandoned;
  ++b.cancelled;
}

// What the probe will have seen of a GET.
void note_exit_of_get(host_books& b, const logged_event& e) {
  b.probe_inline = b.probe_inline || e.fields[1] == operation_exit::inline_done;
  b.probe_callback = b.probe_callback || e.fields[1] == operation_exit::callback;
  if (e.fields[1] != operation_exit::inline_done) return;
  b.probe_ended_well = true;
  const lane_record* const lane = b.lanes.find(b.fibers[e.fiber].last_lane);
  b.probe_shared = b.probe_shared || (lane != nullptr && lane->shared);
}

void ended(world&, host_books& b, const logged_event& e) {
  operation_record& o = b.operations[e.fields[0]];
  ++o.ended;
  if (connection_record* const c = b.connections.find(o.connection); c != nullptr && o.kind == operation_kind::get) {
    if (o.submitted == 0)
      leave_line(*c, e.fields[0]);
    else if (o.ended == 1)
      --c->gets_out;
  }
  b.leave_queue(e.fields[0]);
  if (o.kind == operation_kind::get) note_exit_of_get(b, e);
  if (fiber_record& fiber = b.fibers[e.fiber]; fiber.operation == e.fields[0]) fiber.operation = none;
  if (const std::uint64_t* const key = b.operation_keys.find(e.fields[0]))
    if (key_record& k = b.keys[*key]; k.in_use != 0 && o.ended == 1) --k.in_use;
}

void waiter_told(world&, host_books& b, const logged_event& e) { ++b.operations[e.fields[0]].told; }

void get_abandoned(world&, host_books& b, const logged_event& e) {
  ++b.cancelled;
  if (const span_record* const s = b.spans.find(e.fields[0]))
    if (operation_record* const o = b.operations.find(s->operation)) ++o->abandoned;
}

void get_posted(world&, host_books& b, const logged_event& e) {
  const std::uint64_t* const f = e.fields;
  fiber_record& fiber = b.fibers[e.fiber];
  lane_record* const lane = &b.lanes[f[4]];
  // A long GET is asked for in parts: those after the first belong to whoever posted last.
  if (fiber.operation == none) {
    const operation_record* const before = b.operations.find(lane->operation);
    if (before != nullptr && before->submitted != 0 && before->ended == 0) fiber.operation = lane->operation;
  }
  lane->operation = fiber.operation;
  b.requests[f[0]] = request_record{.operation = fiber.operation,
                                    .pages = f[1],
                                    .offset = f[2],
                                    .bytes = f[3],
                                    .open = true,
                                    .shared = lane->shared,
                                    .fiber = e.fiber};
  if (operation_record* const o = b.operations.find(fiber.operation)) o->request = f[0];
  fiber.operation = none;
  b.open_requests.push_back(f[0]);
}

void get_completed(world&, host_books& b, const logged_event& e) {
  if (const request_record* const r = b.requests.find(e.fields[0]); r != nullptr && e.fields[1] == 0) {
    b.probe_ended_well = true;
    b.probe_shared = b.probe_shared || r->shared;
  }
  b.close_request(e.fields[0]);
}

void called_back(world&, host_books& b, const logged_event& e) {
  b.worked = true;
  if (request_record* const r = b.requests.find(e.fields[0])) ++r->callbacks;
}

void written(world&, host_books& b, const logged_event& e) {
  if (operation_record* const o = b.operations.find(b.operation_of_write(e))) o->landed += e.fields[2];
}

void step_began(world&, host_books& b, const logged_event& e) { ++b.steps[e.fields[0]].began; }

void step_ended(world&, host_books& b, const logged_event& e) {
  ++b.steps[e.fields[0]].ended;
  for (const std::uint64_t id : b.queued)
    if (operation_record& o = b.operations[id]; o.accepted_fiber == e.fiber && o.calls_when_left == none)
      o.calls_when_left = b.progress_calls;
}

void cancel_fired(world&, host_books& b, const logged_event&) { ++b.cancelled; }

}  // namespace

void add_operation_lessons(lesson_table& table) {
  table.on(event_id::operation_accepted, accepted);
  table.on(event_id::operation_waits, waits);
  table.on(event_id::operation_submitted, submitted);
  table.on(event_id::operation_orphaned, orphaned);
  table.on(event_id::operation_abandoned, abandoned);
  table.on(event_id::operation_ended, ended);
  table.on(event_id::waiter_told, waiter_told);
  table.on(event_id::get_abandoned, get_abandoned);
  table.on(hardware_event::driver_get_posted, get_posted);
  table.on(hardware_event::driver_get_completed, get_completed);
  table.on(hardware_event::driver_callback, called_back);
  table.on(hardware_event::dma_write, written);
  table.on(hardware_event::op_began, step_began);
  table.on(hardware_event::op_ended, step_ended);
  table.on(hardware_event::cancel_fired, cancel_fired);
}

}  // namespace holdfast::invariants
