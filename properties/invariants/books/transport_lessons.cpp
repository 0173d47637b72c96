// The transport and its progress thread, as core tells of them.

#include <properties/invariants/books/lessons.hpp>

namespace holdfast::invariants {

namespace {

void transport_changed(world&, host_books& b, const logged_event& e) {
  b.transport = e.fields[1];
  if (b.transport == transport_state::absent) ++b.absent;
  if (b.transport != transport_state::probing) return;
  b.begin_transport();
  b.registered_twice = false;
  b.forget_lives();
}

void failed(world&, host_books& b, const logged_event&) { ++b.failures; }

void capabilities_told(world&, host_books& b, const logged_event& e) { b.capabilities = e.fields[2]; }

void message_copied(world&, host_books& b, const logged_event&) { b.worked = true; }

void progress_woke(world& w, host_books& b, const logged_event& e) {
  if (b.worked || !b.idle_since.set() || elapsed_ns(w, e, b.idle_since) > 1'000'000'000) {
    b.idle_since = moment_of(w, e);
    b.idle_wakes = 0;
  }
  // A deadline is work: who set it wanted it.
  if (e.fields[1] != wake_cause::deadline) ++b.idle_wakes;
  b.worked = false;
  b.unheard = e.fields[1] == wake_cause::descriptor || e.fields[1] == wake_cause::both;
}

void progress_changed(world&, host_books& b, const logged_event& e) {
  b.progress = e.fields[1];
  if (b.progress_fiber == no_fiber) b.progress_fiber = e.fiber;
}

void witness_issued(world&, host_books& b, const logged_event& e) {
  ++b.witnesses;
  ++b.witnesses_of_this;
  b.witnessed_epoch = e.fields[0];
}

void teardown_hung(world&, host_books& b, const logged_event&) { ++b.hung; }

}  // namespace

void add_transport_lessons(lesson_table& table) {
  table.on(event_id::transport_state, transport_changed);
  table.on(event_id::transport_failed, failed);
  table.on(event_id::transport_capabilities, capabilities_told);
  table.on(event_id::message_copied, message_copied);
  table.on(event_id::progress_woke, progress_woke);
  table.on(event_id::progress_state, progress_changed);
  table.on(event_id::witness_issued, witness_issued);
  table.on(event_id::teardown_hung, teardown_hung);
}

}  // namespace holdfast::invariants
