// Connections, endpoints and keys, and the lives of peers.

#include <properties/invariants/books/lessons.hpp>

namespace holdfast::invariants {

namespace {

void connection_changed(world& w, host_books& b, const logged_event& e) {
  const std::uint64_t* const f = e.fields;
  connection_record& c = b.connections[f[0]];
  if (c.state == connection_state::unseen) c.began = moment_of(w, e);
  c.before = c.state;
  c.state = f[3];
  b.worked = true;
  if (f[2] != 0) {
    c.worker_id = f[1];
    c.incarnation = f[2];
  }
  if (c.state == connection_state::lost) ++c.lost;
}

void hello_accepted(world&, host_books& b, const logged_event& e) {
  connection_record& c = b.connections[e.fields[0]];
  ++c.greeted;
  c.probing = b.capabilities == none;
  c.worker_id = e.fields[1];
  c.incarnation = e.fields[2];
}

void peer_lost(world&, host_books& b, const logged_event& e) {
  connection_record& c = b.connections[e.fields[2]];
  ++c.reported;
  if (e.fields[4] == 0) c.lost_at_call = b.progress_calls;
}

void peer_declared_dead(world&, host_books& b, const logged_event& e) {
  b.replaced_incarnation[e.fields[1]] = e.fields[0];
}

void endpoint_changed(world&, host_books& b, const logged_event& e) {
  const std::uint64_t* const f = e.fields;
  endpoint_record& p = b.endpoints[f[0]];
  p.before = p.state;
  p.state = f[2];
  p.connection = f[1];
  p.lane = f[3];
  if (p.before == endpoint_state::unseen)
    if (const connection_record* const c = b.connections.find(f[1])) p.life = c->incarnation;
  b.worked = true;
  if (p.state == endpoint_state::failed) ++p.failed;
}

void lane_shared(world&, host_books& b, const logged_event& e) { b.lanes[e.fields[0]].shared = true; }

void key_changed(world&, host_books& b, const logged_event& e) {
  key_record& k = b.keys[e.fields[0]];
  k.state = e.fields[3];
  k.connection = e.fields[1];
  if (k.state != key_state::destroyed) return;
  ++k.destroyed;
  k.in_use_at_the_end = k.in_use;
}

void key_used(world&, host_books& b, const logged_event& e) {
  key_record& k = b.keys[e.fields[0]];
  k.after_end = k.destroyed != 0;
  ++k.in_use;
  b.operation_keys[e.fields[1]] = e.fields[0];
}

}  // namespace

void add_peer_lessons(lesson_table& table) {
  table.on(event_id::connection_state, connection_changed);
  table.on(event_id::hello_accepted, hello_accepted);
  table.on(event_id::peer_lost, peer_lost);
  table.on(event_id::peer_declared_dead, peer_declared_dead);
  table.on(event_id::endpoint_state, endpoint_changed);
  table.on(hardware_event::driver_lane_shared, lane_shared);
  table.on(event_id::key_state, key_changed);
  table.on(event_id::key_used, key_used);
}

}  // namespace holdfast::invariants
