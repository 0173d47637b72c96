#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/telemetry/emit.hpp>
#include <holdfast/transport/connections.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::transport {

namespace {

// Requests of peers that wait for a step of the loop; what comes beyond is rejected.
constexpr std::size_t requests_max = 256;
// Data endpoints outlive the peers that they lead to; beyond so many, for each connection that may be, transfers go over
// tcp.
constexpr std::size_t data_endpoints_of_a_connection = 4;

bool attempting(const connection& c) noexcept {
  return c.state == connection_state::connecting || c.state == connection_state::greeting;
}

bool serving(const connection& c) noexcept {
  return c.state == connection_state::ready || c.state == connection_state::draining;
}

bool expects(const peer_id& expected, const peer_id& found) noexcept {
  return (expected.worker_id == 0 || expected.worker_id == found.worker_id) &&
         (expected.incarnation == 0 || expected.incarnation == found.incarnation);
}

}  // namespace

// ---- requests, hellos and closes: hand over to the set ------------------------------------------------------------

void connect_request::execute() noexcept { set->start_connect(*this); }
void connect_request::refuse() noexcept { connected(fail(error_code::shutting_down, "transport.connect")); }
void close_request::execute() noexcept { set->start_close(*this); }
void close_request::refuse() noexcept { closed(fail(error_code::shutting_down, "transport.close")); }

void peer_order::execute() noexcept { set->start_order(*this); }
void peer_order::refuse() noexcept { carried_out(fail(error_code::shutting_down, "transport.peer")); }

void hello_operation::exited(operation_exit exit, int status) noexcept {
  in_flight = false;
  const bool ok = status == 0 && (exit == operation_exit::inline_done || exit == operation_exit::callback);
  (ok ? of->hello_sent : of->hello_send_failed) = true;
  of->failure_status = ok ? of->failure_status : status;
  set->mark_dirty(*of);
}

void close_operation::exited(operation_exit, int) noexcept {
  // Whatever the status: the library has let go of the endpoint.
  of->close_ended = true;
  set->mark_dirty(*of);
}

// ---- records ------------------------------------------------------------------------------------------------------

connection_set::connection_set(event_log& log, const platform::clock& clock, const settings& values,
                               const peer_id& self, const platform::machine_identity& machine, wire& library,
                               operation_table& table, const platform::executor& executor,
                               std::shared_ptr<const loss_handler> watch)
    : log_(log),
      clock_(clock),
      settings_(values),
      self_(self),
      machine_(machine),
      wire_(library),
      table_(table),
      executor_(executor),
      watch_(std::move(watch)),
      directory_(log, values.max_connections),
      history_(4 * values.max_connections) {
  requested_.reserve(requests_max);
  over_bound_.reserve(requests_max);
}

connection_set::~connection_set() {
  while (first_ != nullptr) {
    connection* const next = first_->next;
    while (first_->keys != nullptr) delete std::exchange(first_->keys, first_->keys->next);
    delete first_;
    first_ = next;
  }
  while (data_first_ != nullptr) delete std::exchange(data_first_, data_first_->next);
}

connection* connection_set::make(bool initiated) noexcept {
  if (platform::heap_fault("transport.connection")) return nullptr;
  auto* const c = new (std::nothrow) connection;
  if (c == nullptr) return nullptr;
  if (watch_ != nullptr) {
    if (!platform::heap_fault("transport.loss_notice")) c->notice.reset(new (std::nothrow) loss_notice(watch_));
    if (c->notice == nullptr) {
      delete c;
      return nullptr;
    }
  }
  c->number = ++last_number_;
  c->initiated = initiated;
  c->initiator_number = c->number;
  c->hello_out.of = c->close_out.of = c;
  c->hello_out.set = c->close_out.set = this;
  c->cookie.of = c;
  c->previous = last_;
  (last_ != nullptr ? last_->next : first_) = c;
  last_ = c;
  ++count_;
  return c;
}

void connection_set::destroy(connection& c) noexcept {
  directory_.forget(c);
  (c.previous != nullptr ? c.previous->next : first_) = c.next;
  (c.next != nullptr ? c.next->previous : last_) = c.previous;
  --count_;
  if (c.ended) --ended_;
  delete &c;
}

void connection_set::mark_dirty(connection& c) noexcept {
  if (c.dirty) return;
  c.dirty = true;
  c.next_dirty = nullptr;
  (dirty_last_ != nullptr ? dirty_last_->next_dirty : dirty_first_) = &c;
  dirty_last_ = &c;
}

void connection_set::set_deadline(connection& c, platform::time_point at) noexcept {
  c.deadline = at;
  nearest_ = std::min(nearest_, at);
}

void connection_set::endpoint_moves(connection& c, endpoint_state to) noexcept {
  c.endpoint_is = to;
  emit::endpoint_state(log_, c.endpoint_id, c.number, static_cast<std::uint64_t>(to),
                       static_cast<std::uint64_t>(endpoint_lane::control));
}

void connection_set::data_moves(data_endpoint& data, endpoint_state to) noexcept {
  data.is = to;
  emit::endpoint_state(log_, data.id, data.connection, static_cast<std::uint64_t>(to),
                       static_cast<std::uint64_t>(endpoint_lane::data));
}

// ---- what callbacks record ------------------------------------------------------------------------------------------

void connection_set::connection_requested(wire_connection_request request) noexcept {
  auto& list = requested_.size() < requests_max ? requested_ : over_bound_;
  try {
    list.push_back(request);
  } catch (const std::bad_alloc&) {
    // The bound was passed by another 256 within one step, and no memory to remember more: the library keeps it.
  }
}

void connection_set::endpoint_failed(void* cookie, int status) noexcept {
  auto& which = *static_cast<endpoint_cookie*>(cookie);
  if (data_endpoint* const data = which.data; data != nullptr) {
    data->failed = true;
    if (data->is != endpoint_state::open) return;
    data_moves(*data, endpoint_state::failed);
    which.of->endpoint_failed = true;
    which.of->failure_status = status;
    mark_dirty(*which.of);
    return;
  }
  connection& c = *which.of;
  if (c.endpoint_is != endpoint_state::open) return;
  c.endpoint_failed = true;
  c.failure_status = status;
  endpoint_moves(c, endpoint_state::failed);
  mark_dirty(c);
}

void connection_set::message_received(void* cookie, std::uint16_t kind, std::span<const std::byte> bytes,
                                      bool as_descriptor) noexcept {
  connection* const from = cookie != nullptr ? static_cast<endpoint_cookie*>(cookie)->of : nullptr;
  if (from == nullptr) {
    emit::protocol_violation(log_, std::uint64_t{0}, bytes.size(), hello_bytes_max);
    return;
  }
  connection& c = *from;
  if (kind != hello_kind || as_descriptor || c.hello_arrived) {
    c.violated = true;
    c.violation_bytes = bytes.size();
  } else {
    // Never more than the announced size is copied, whatever the peer sent.
    c.hello_arrived = true;
    c.hello_oversized = bytes.size() > hello_bytes_max;
    c.hello_size = bytes.size();
    const std::size_t copied = std::min(bytes.size(), hello_bytes_max);
    std::memcpy(c.hello_in.data(), bytes.data(), copied);
    emit::message_copied(log_, c.number, copied, hello_bytes_max);
  }
  mark_dirty(c);
}

// ---- steps ----------------------------------------------------------------------------------------------------------

bool connection_set::has_work() const noexcept {
  return dirty_first_ != nullptr || !requested_.empty() || !over_bound_.empty();
}

bool connection_set::step(platform::time_point now) noexcept {
  bool did = false;
  if (!requested_.empty() || !over_bound_.empty()) {
    accept_requested(now);
    did = true;
  }
  while (dirty_first_ != nullptr) {
    connection& c = *dirty_first_;
    dirty_first_ = c.next_dirty;
    if (dirty_first_ == nullptr) dirty_last_ = nullptr;
    c.dirty = false;
    attend(c, now);
    did = true;
  }
  if (now < nearest_) return did;
  nearest_ = platform::never;
  for (connection* c = first_; c != nullptr;) {
    connection* const next = c->next;
    if (c->suspect_at <= now) {
      suspect(*c, now);
      did = true;
    }
    nearest_ = std::min(nearest_, c->suspect_at);
    if (c->deadline <= now) {
      c->deadline = platform::never;
      expire(*c, now);
      did = true;
    } else {
      nearest_ = std::min(nearest_, c->deadline);
    }
    c = next;
  }
  return did;
}

void connection_set::accept_requested(platform::time_point now) noexcept {
  for (const wire_connection_request request : requested_) {
    connection* const c = closing_ || living() >= settings_.max_connections ? nullptr : make(false);
    if (c == nullptr) {
      wire_.reject(request);
      continue;
    }
    directory_.add(*c, connection_state::greeting);
    // A failing accept has consumed the request: there is nothing left to reject.
    const auto made = wire_.accept(request, &c->cookie);
    if (!made) {
      fail_attempt(*c, made.error());
      continue;
    }
    c->endpoint = *made;
    set_deadline(*c, now + settings_.connect_timeout);
    opened(*c);
  }
  requested_.clear();
  for (const wire_connection_request request : over_bound_) wire_.reject(request);
  over_bound_.clear();
}

void connection_set::reject_all() noexcept {
  for (const wire_connection_request request : requested_) wire_.reject(request);
  for (const wire_connection_request request : over_bound_) wire_.reject(request);
  requested_.clear();
  over_bound_.clear();
}

void connection_set::opened(connection& c) noexcept {
  c.endpoint_id = ++last_endpoint_;
  endpoint_moves(c, endpoint_state::open);
  send_hello(c);
}

void connection_set::send_hello(connection& c) noexcept {
  const wire_versions& library = wire_.versions();
  hello message;
  message.sender = self_;
  message.epoch = settings_.epoch;
  message.library_major = static_cast<std::uint16_t>(library.major);
  message.library_minor = static_cast<std::uint16_t>(library.minor);
  message.library_release = static_cast<std::uint16_t>(library.release);
  message.connection = c.number;
  if (shares_memory_.load(std::memory_order_acquire)) {
    message.machine = machine_;
    message.worker_address = wire_.worker_address();
  }
  encode_hello(message, c.hello_out.message);
  c.hello_out.in_flight = true;
  // Hellos are not counted against the table's capacity, so this does not fail.
  static_cast<void>(table_.admit(c.hello_out, operation_kind::hello, c.expected, c.hello_out.message.size));
  table_.begin_post(c.hello_out, c.number);
  const posted answer = wire_.send(c.endpoint, hello_kind, c.hello_out.message.whole(), c.hello_out);
  table_.settle_post(c.hello_out, answer);
}

void connection_set::attend(connection& c, platform::time_point now) noexcept {
  if (c.keys_to_destroy && (!c.close_ended || c.shared_memory)) destroy_condemned(c);
  if (c.ended) {
    if (c.outstanding == 0) destroy(c);
    return;
  }
  give_turns(c);
  if (c.data != nullptr && c.data->is == endpoint_state::failed && c.endpoint_is == endpoint_state::open) {
    lose(c, loss_reason::error);
  } else if (c.endpoint_is == endpoint_state::failed) {
    if (attempting(c)) {
      fail_attempt(c, peer_error(c, c.failure_status));
    } else {
      // Both sides connected at once, and the other one has ended the connection that gives way: the one that serves is
      // perhaps known here already. Then nobody is lost.
      greet_arrived(now);
      lose(c, loss_reason::error);
    }
  } else {
    if (c.hello_sent && c.state == connection_state::connecting) directory_.move(c, connection_state::greeting);
    if (c.hello_send_failed && attempting(c)) {
      fail_attempt(c, peer_error(c, c.failure_status));
    } else if (c.violated && (attempting(c) || serving(c))) {
      emit::protocol_violation(log_, c.number, c.violation_bytes, hello_bytes_max);
      if (serving(c))
        lose(c, loss_reason::protocol);
      else
        refuse_hello(c, hello_refusal::limits, error{error_code::protocol, "transport.hello"});
    } else if (c.hello_arrived && attempting(c)) {
      greet(c, now);
    } else if (c.state == connection_state::draining) {
      drain_further(c, now);
    }
  }
  finish_if_done(c);
}

void connection_set::expire(connection& c, platform::time_point now) noexcept {
  switch (c.state) {
    case connection_state::connecting:
    case connection_state::greeting:
      fail_attempt(c, fail(error_code::timed_out, "transport.connect", c.number).error());
      break;
    case connection_state::draining:
      directory_.move(c, connection_state::closing);
      retire_data(c);
      if (c.close_ended) {
        mark_dirty(c);
      } else if (c.endpoint_is == endpoint_state::flushing) {
        parked_.fetch_add(1, std::memory_order_relaxed);
        endpoint_moves(c, endpoint_state::parked);
        answer_close(c, close_answer{close_kind::parked, c.outstanding});
      } else {
        close_endpoint(c, true);
        set_deadline(c, now + settings_.close_timeout);
      }
      break;
    default:
      retire_data(c);
      answer_close(c, close_answer{close_kind::forced, c.outstanding});
      mark_dirty(c);
      break;
  }
}

// Silence counts only while something is owed: a connection without traffic is not expected to speak.
void connection_set::watch_silence(connection& c) noexcept {
  if (settings_.peer_suspect_after.count() == 0 || c.suspect_at != platform::never || c.suspect_told) return;
  c.heard = false;
  c.silent_since = clock_.now();
  c.suspect_at = c.silent_since + settings_.peer_suspect_after;
  nearest_ = std::min(nearest_, c.suspect_at);
}

void connection_set::suspect(connection& c, platform::time_point now) noexcept {
  c.suspect_at = platform::never;
  const std::uint64_t owed = c.outstanding - c.orphaned;
  if (owed == 0 || !serving(c)) return;
  if (c.heard) return watch_silence(c);
  c.suspect_told = true;
  emit::peer_suspect(log_, c.peer.worker_id, c.peer.incarnation, c.number, owed,
                     static_cast<std::uint64_t>((now - c.silent_since).count()));
}

// ---- becoming ready -------------------------------------------------------------------------------------------------

void connection_set::start_connect(connect_request& request) noexcept {
  if (closing_) return request.refuse();
  for (connection* c = first_; c != nullptr; c = c->next) {
    if (!c->initiated || c->address != request.address) continue;
    if (attempting(*c) && (request.expected == peer_id{} || request.expected == c->expected)) {
      request.next_waiter = c->connecting_waiters;
      c->connecting_waiters = &request;
      return;
    }
    if (c->state == connection_state::ready && expects(request.expected, c->peer)) return request.connected(c->peer);
  }
  if (living() >= settings_.max_connections)
    return request.connected(
        fail(error_code::limit_exceeded, "transport.connect", 0, 1, settings_.max_connections, living()));
  connection* const c = make(true);
  if (c == nullptr)
    return request.connected(fail(error_code::out_of_memory, "transport.connect", 0, sizeof(connection)));
  c->address.swap(request.address);
  c->expected = request.expected;
  c->loopback = request.loopback;
  c->connecting_waiters = &request;
  directory_.add(*c, connection_state::connecting);
  const auto made = wire_.connect(c->address, &c->cookie);
  if (!made) {
    fail_attempt(*c, made.error());
    return;
  }
  c->endpoint = *made;
  set_deadline(*c, clock_.now() + settings_.connect_timeout);
  opened(*c);
}

void connection_set::greet_arrived(platform::time_point now) noexcept {
  for (connection* c = first_; c != nullptr; c = c->next)
    if (c->hello_arrived && !c->violated && attempting(*c) && c->endpoint_is == endpoint_state::open) greet(*c, now);
}

void connection_set::greet(connection& c, platform::time_point now) noexcept {
  if (c.state == connection_state::connecting) directory_.move(c, connection_state::greeting);
  const std::span<const std::byte> bytes(c.hello_in.data(), std::min(c.hello_size, hello_bytes_max));
  const auto read = decode_hello(bytes);
  if (!read || c.hello_oversized) {
    const hello_refusal why = read ? hello_refusal::limits : read.error();
    error told = fail(error_code::protocol, "transport.hello", c.number, c.hello_size, hello_bytes_max).error();
    if (why == hello_refusal::version)
      told = fail(error_code::version_mismatch, "transport.hello", c.number, protocol_version_high,
                  std::to_integer<std::uint64_t>(c.hello_in[10]))
                 .error();
    return refuse_hello(c, why, told);
  }
  const hello& message = *read;
  if (message.sender.incarnation == self_.incarnation) {
    if (!loopback_allowed_.load(std::memory_order_acquire) || message.sender != self_)
      return refuse_hello(c, hello_refusal::self, fail(error_code::protocol, "transport.hello", c.number).error());
    c.loopback = true;
    // The accepted half of the probe's pair only serves: two ready connections of one name must not be.
    if (!c.initiated) return set_deadline(c, now + settings_.startup_timeout);
  }
  if (!expects(c.expected, message.sender)) {
    const bool restarted = c.expected.worker_id == 0 || c.expected.worker_id == message.sender.worker_id;
    return refuse_hello(
        c, hello_refusal::expected,
        restarted ? fail(error_code::stale_key, "transport.hello", c.number, 0, c.expected.incarnation).error()
                  : fail_with_words(error_code::unreachable, "transport.hello", "somebody else answers at this address",
                                    c.number)
                        .error());
  }
  if (history_.judge(message.sender) == incarnation_history::verdict::old)
    return refuse_hello(
        c, hello_refusal::old,
        fail(error_code::stale_key, "transport.hello", c.number, 0, message.sender.incarnation).error());
  if (!history_.accept(message.sender))
    return fail_attempt(c, fail(error_code::out_of_memory, "transport.hello", c.number).error());

  c.peer = message.sender;
  c.version = message.common_version();
  const connection_limits ours;
  c.limits.control_message_max = std::min(ours.control_message_max, message.limits.control_message_max);
  c.limits.chunk_max = std::min(ours.chunk_max, message.limits.chunk_max);
  c.limits.requests_max = std::min(ours.requests_max, message.limits.requests_max);
  c.limits.receive_bytes_max = std::min(ours.receive_bytes_max, message.limits.receive_bytes_max);
  if (!c.initiated) c.initiator_number = message.connection;
  // The library reads the address that the peer made: only of one that is the same in every digit.
  const wire_versions& library = wire_.versions();
  const bool same_library = message.library_major == library.major && message.library_minor == library.minor &&
                            message.library_release == library.release;
  if (machine_.known() && message.machine == machine_ && same_library && !wire_.worker_address().empty())
    c.shared_address_bytes = message.worker_address.size();
  if (machine_.known() && message.machine == machine_ && shares_memory_.load(std::memory_order_acquire))
    note_shared(message.sender);
  emit::hello_accepted(log_, c.number, c.peer.worker_id, c.peer.incarnation, c.version);
  make_ready(c, now);
}

void connection_set::refuse_hello(connection& c, hello_refusal why, const error& told) noexcept {
  emit::hello_refused(log_, c.number, static_cast<std::uint64_t>(why), c.hello_size);
  directory_.move(c, connection_state::closing);
  answer_connect(c, std::unexpected(told));
  close_endpoint(c, true);
}

bool connection_set::canonical(const connection& a, const connection& b) const noexcept {
  const peer_id& initiator_a = a.initiated ? self_ : a.peer;
  const peer_id& initiator_b = b.initiated ? self_ : b.peer;
  if (initiator_a != initiator_b) return initiator_a < initiator_b;
  // Both sides know the initiator's numbers, so both choose the same one: the newer, since an older one may be half dead.
  return a.initiator_number > b.initiator_number;
}

connection* connection_set::other_life_of(const peer_id& peer, const connection& except) noexcept {
  for (connection* c = first_; c != nullptr; c = c->next)
    if (c != &except && serving(*c) && c->peer.worker_id == peer.worker_id && c->peer.incarnation != peer.incarnation)
      return c;
  return nullptr;
}

void connection_set::make_ready(connection& c, platform::time_point now) noexcept {
  while (connection* const earlier = other_life_of(c.peer, c)) {
    lose(*earlier, loss_reason::restarted);
    mark_dirty(*earlier);
  }
  connection* const present = directory_.find(c.peer);
  c.deadline = platform::never;
  connection* loser = nullptr;
  if (present == nullptr || canonical(c, *present)) open_data(c);
  if (present == nullptr) {
    directory_.move(c, connection_state::ready);
  } else if (canonical(c, *present)) {
    directory_.supersede(*present, c);
    loser = present;
  } else {
    directory_.move(c, connection_state::draining);
    loser = &c;
  }
  answer_connect(c, c.peer);
  if (loser != nullptr) {
    loser->superseded = true;
    begin_draining(*loser, now, now + settings_.close_timeout);
  }
  if (closing_ && c.state == connection_state::ready) begin_draining(c, now, now + settings_.close_timeout);
}

void connection_set::answer_connect(connection& c, const result<peer_id>& answer) noexcept {
  while (connect_request* const waiter = c.connecting_waiters) {
    c.connecting_waiters = waiter->next_waiter;
    waiter->connected(answer);
  }
}

void connection_set::fail_attempt(connection& c, const error& why) noexcept {
  directory_.move(c, connection_state::failed);
  error told = why;
  // A failed attempt submitted nothing, whatever the library calls it.
  if (told.code == error_code::backend || told.code == error_code::peer_lost) told.code = error_code::unreachable;
  told.operation = "transport.connect";
  answer_connect(c, std::unexpected(told));
  close_endpoint(c, true);
}

// ---- the end --------------------------------------------------------------------------------------------------------

void connection_set::lose(connection& c, loss_reason reason) noexcept {
  if (!serving(c)) return;
  if (c.superseded) {
    directory_.move(c, connection_state::closing);
  } else {
    directory_.move(c, connection_state::lost);
    emit::peer_lost(log_, c.peer.worker_id, c.peer.incarnation, c.number, c.outstanding,
                    static_cast<std::uint64_t>(reason));
  }
  retire_data(c);
  // The force-close makes the library call back for everything outstanding; that, and nothing else, is their fence.
  close_endpoint(c, true);
  if (c.superseded || c.loopback || c.notice == nullptr) return;
  emit::loss_sent(log_, c.peer.worker_id, c.peer.incarnation, c.number);
  loss_notice::send(std::move(c.notice), executor_, {c.peer, c.number, reason});
}

void connection_set::start_close(close_request& request) noexcept {
  connection* const c = directory_.find(request.peer);
  if (c == nullptr) return request.closed(fail(error_code::unreachable, "transport.close", request.peer.worker_id));
  request.next_waiter = c->closing_waiters;
  c->closing_waiters = &request;
  begin_draining(*c, clock_.now(), request.deadline);
}

void connection_set::note_shared(const peer_id& peer) noexcept {
  const auto at = std::lower_bound(shared_with_.begin(), shared_with_.end(), peer);
  if (at != shared_with_.end() && *at == peer) return;
  try {
    if (platform::heap_fault("transport.shared_with") || shared_with_.size() >= 16 * settings_.max_connections)
      shared_with_anybody_ = true;
    else
      shared_with_.insert(at, peer);
  } catch (const std::bad_alloc&) {
    shared_with_anybody_ = true;
  }
}

bool connection_set::shared_with(const peer_id& peer) const noexcept {
  return shared_with_anybody_ || std::binary_search(shared_with_.begin(), shared_with_.end(), peer);
}

void connection_set::start_order(peer_order& order) noexcept {
  const peer_id peer = order.peer;
  const bool dead = order.asked == peer_order::what::declare_dead;
  if (dead) {
    if (!history_.bury(peer)) return order.carried_out(fail(error_code::out_of_memory, "transport.declare_dead"));
    emit::peer_declared_dead(log_, peer.worker_id, peer.incarnation, static_cast<std::uint64_t>(order.evidence));
  }
  revoke_answer answer;
  // A read that a dead process left in shared memory may still be served; one that lives may post more.
  answer.reads_stop = !shared_with(peer);
  for (connection* c = first_; c != nullptr; c = c->next) {
    if (c->ended || c->peer != peer || c->loopback) continue;
    // A flushing close cannot be turned into a forced one, and serves until it ends.
    if (c->endpoint_is == endpoint_state::flushing || c->endpoint_is == endpoint_state::parked)
      answer.reads_stop = false;
    answer.held += c->outstanding;
    if (!serving(*c)) continue;
    ++answer.connections;
    if (dead) {
      lose(*c, loss_reason::declared);
    } else {
      directory_.move(*c, connection_state::closing);
      close_endpoint(*c, true);
    }
    mark_dirty(*c);
  }
  if (!dead)
    emit::peer_revoked(log_, peer.worker_id, peer.incarnation, answer.connections, answer.held, answer.reads_stop);
  order.carried_out(answer);
}

void connection_set::begin_draining(connection& c, platform::time_point now, platform::time_point until) noexcept {
  if (c.state == connection_state::ready) directory_.move(c, connection_state::draining);
  c.close_deadline = until;
  set_deadline(c, until);
  drain_further(c, now);
}

void connection_set::drain_further(connection& c, platform::time_point now) noexcept {
  if (c.outstanding != c.orphaned || c.waiting_first != nullptr || c.endpoint_is != endpoint_state::open) return;
  // The peer may still use a connection that lost to another; whoever made it ends it, the other side waits its turn.
  if (c.superseded && !c.initiated && now < c.close_deadline && !closing_) return;
  close_endpoint(c, false);
  set_deadline(c, std::min(now + settings_.close_timeout, c.close_deadline));
}

void connection_set::close_endpoint(connection& c, bool force) noexcept {
  if (c.endpoint_is != endpoint_state::open && c.endpoint_is != endpoint_state::failed) {
    // Never opened, or closed already: no call on an endpoint after its close.
    if (c.endpoint == nullptr && c.endpoint_is == endpoint_state::destroyed) c.close_ended = true;
    mark_dirty(c);
    return;
  }
  refuse_waiting(c);
  retire_data(c);
  condemn_keys(c);
  const wire_endpoint endpoint = std::exchange(c.endpoint, nullptr);
  endpoint_moves(c, force ? endpoint_state::forced : endpoint_state::flushing);
  if (force) {
    c.forced = true;
    forced_.fetch_add(1, std::memory_order_relaxed);
  }
  static_cast<void>(table_.admit(c.close_out, operation_kind::close, c.peer, 0));
  table_.begin_post(c.close_out, c.number);
  const posted answer = wire_.close(endpoint, force, c.close_out);
  table_.settle_post(c.close_out, answer);
  mark_dirty(c);
}

// ---- the data endpoint ----------------------------------------------------------------------------------------------

void connection_set::open_data(connection& c) noexcept {
  if (c.shared_address_bytes == 0 || !shares_memory_.load(std::memory_order_acquire)) return;
  data_endpoint* data = parked_for(c.peer);
  if (data == nullptr) {
    if (data_endpoints_ == data_endpoints_of_a_connection * settings_.max_connections)
      return emit::data_endpoint_refused(log_, c.number, 0);
    if (!platform::heap_fault("transport.data_endpoint")) data = new (std::nothrow) data_endpoint;
    if (data == nullptr) return emit::data_endpoint_refused(log_, c.number, 0);
    data->cookie.data = data;
    const auto made = wire_.open_data(
        std::span<const std::byte>(c.hello_in).subspan(hello_bytes, c.shared_address_bytes), &data->cookie);
    if (!made) {
      delete data;
      return emit::data_endpoint_refused(log_, c.number, made.error().numbers[0]);
    }
    data->handle = *made;
    data->id = ++last_endpoint_;
    data->peer = c.peer;
    data->next = std::exchange(data_first_, data);
    ++data_endpoints_;
  }
  data->connection = c.number;
  data->cookie.of = &c;
  c.data = data;
  c.shared_memory = true;
  data_moves(*data, endpoint_state::open);
}

// The same life has the same worker, so its address leads where it did. Transfers of an earlier connection that are still
// held on it stay what they are.
data_endpoint* connection_set::parked_for(const peer_id& peer) noexcept {
  data_endpoint* data = data_first_;
  while (data != nullptr && (data->peer != peer || data->is != endpoint_state::parked || data->failed))
    data = data->next;
  return data;
}

// The connection ends, the endpoint does not. The library names it to the peer by its address, and looks at nothing before
// it answers a read that names it; so it must be there for as long as a read may arrive, and silence, a cut link or an
// answered close say nothing about that. Whoever waits for a transfer on it is told that the fate is unknown: it stays as it
// is until a callback comes after all or the worker is destroyed.
void connection_set::retire_data(connection& c) noexcept {
  data_endpoint* const data = std::exchange(c.data, nullptr);
  if (data == nullptr) return;
  bool held = false;
  for (transfer* posted_on = data->first; posted_on != nullptr; posted_on = posted_on->next_posted_) {
    if (posted_on->orphaned_) continue;
    held = true;
    posted_on->orphaned_ = true;
    ++c.orphaned;
    table_.orphan(*posted_on, c.number, posted_on->bytes);
    posted_on->orphaned();
  }
  if (held) parked_.fetch_add(1, std::memory_order_relaxed);
  data->cookie.of = nullptr;
  data_moves(*data, endpoint_state::parked);
  condemn_keys(c);
}

// The connection is over for everybody who asks; the record stays while the library may still speak of it.
void connection_set::end_record(connection& c) noexcept {
  directory_.move(c, connection_state::closed);
  answer_connect(c, fail(error_code::shutting_down, "transport.connect", c.number));
  const bool parked = c.orphaned != 0;
  answer_close(c, close_answer{parked     ? close_kind::parked
                               : c.forced ? close_kind::forced
                                          : close_kind::clean,
                               c.orphaned});
  if (c.outstanding == 0) return destroy(c);
  c.ended = true;
  c.deadline = platform::never;
  ++ended_;
}

void connection_set::finish_if_done(connection& c) noexcept {
  if (!c.close_ended || c.outstanding != c.orphaned || c.hello_out.in_flight || c.dirty) return;
  if (c.data != nullptr) return;
  destroy_condemned(c);
  if (c.endpoint_is != endpoint_state::destroyed) endpoint_moves(c, endpoint_state::destroyed);
  end_record(c);
}

void connection_set::answer_close(connection& c, const result<close_answer>& answer) noexcept {
  while (close_request* const waiter = c.closing_waiters) {
    c.closing_waiters = waiter->next_waiter;
    waiter->closed(answer);
  }
}

void connection_set::close_all(platform::time_point now, platform::time_point until) noexcept {
  closing_ = true;
  for (connection* c = first_; c != nullptr; c = c->next) {
    refuse_waiting(*c);
    if (attempting(*c))
      fail_attempt(*c, fail(error_code::shutting_down, "transport.connect", c->number).error());
    else if (c->state == connection_state::ready)
      begin_draining(*c, now, until);
    else if (c->state == connection_state::draining)
      drain_further(*c, now);
  }
}

void connection_set::force_all(platform::time_point now) noexcept {
  for (connection* c = first_; c != nullptr; c = c->next) {
    if (c->ended) continue;
    if (c->state != connection_state::draining) continue;
    retire_data(*c);
    mark_dirty(*c);
    if (c->endpoint_is != endpoint_state::open) continue;
    directory_.move(*c, connection_state::closing);
    close_endpoint(*c, true);
    set_deadline(*c, now + settings_.close_timeout);
  }
}

bool connection_set::owes_callbacks() const noexcept {
  for (const connection* c = first_; c != nullptr; c = c->next)
    if (c->endpoint_is == endpoint_state::forced && c->outstanding != c->orphaned) return true;
  return false;
}

std::uint64_t connection_set::living() const noexcept { return count_ - ended_; }

void connection_set::worker_gone() noexcept {
  worker_is_gone_ = true;
  dirty_first_ = dirty_last_ = nullptr;
  while (data_endpoint* const data = data_first_) {
    data_first_ = data->next;
    if (connection* const user = data->cookie.of) user->data = nullptr;
    data_moves(*data, endpoint_state::destroyed);
    delete data;
  }
  while (first_ != nullptr) {
    connection& c = *first_;
    // Keys that were in use to the end went with the worker.
    while (c.keys != nullptr) {
      delete std::exchange(c.keys, c.keys->next);
      keys_.fetch_sub(1, std::memory_order_relaxed);
    }
    if (c.endpoint_is != endpoint_state::destroyed) endpoint_moves(c, endpoint_state::destroyed);
    if (!c.ended) directory_.move(c, connection_state::closed);
    answer_connect(c, fail(error_code::shutting_down, "transport.connect", c.number));
    answer_close(c, close_answer{close_kind::parked, 0});
    destroy(c);
  }
}

error connection_set::peer_error(const connection& c, int status) const noexcept {
  error made = fail_with_words(error_code::peer_lost, "transport.get", wire_.words(status), c.number).error();
  made.numbers[0] = c.peer.worker_id;
  made.numbers[1] = c.peer.incarnation;
  return made;
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
