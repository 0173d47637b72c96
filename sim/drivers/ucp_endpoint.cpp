// Listeners, connection requests, endpoints: how they begin, fail and end.
#include <sim/drivers/ucp_double.hpp>

#include <sim/faults/fault_plan.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace holdfast::sim::ucp_double {

namespace {

constexpr std::size_t envelope_bytes = 64;  // of a message on the wire, beside what it carries

struct socket_name {
  std::uint32_t address;  // host byte order
  std::uint16_t port;
};

std::optional<socket_name> read_name(const ucs_sock_addr_t& from) noexcept {
  sockaddr_in name{};
  if (from.addr == nullptr || from.addrlen < sizeof name || from.addr->sa_family != AF_INET) return std::nullopt;
  std::memcpy(&name, from.addr, sizeof name);
  return socket_name{ntohl(name.sin_addr.s_addr), ntohs(name.sin_port)};
}

/// What ucp_worker_get_address gives out.
struct address_bytes {
  std::uint32_t magic;
  std::uint32_t size;
  std::uint32_t host;
  std::uint32_t life;
  std::uint32_t machine;
  std::uint16_t port;
  std::uint8_t tcp;
  std::uint8_t shared;
  std::uint64_t sum;
};
constexpr std::uint32_t address_magic = 0x31616668;
constexpr std::uint16_t first_address_port = 60'000;  // above what listeners get

std::uint64_t sum_of(const address_bytes& a) noexcept {
  std::uint64_t sum = 0xcbf29ce484222325;  // FNV-1a
  for (const std::uint64_t part :
       {std::uint64_t{a.magic}, std::uint64_t{a.size}, std::uint64_t{a.host}, std::uint64_t{a.life},
        std::uint64_t{a.machine}, std::uint64_t{a.port}, std::uint64_t{a.tcp}, std::uint64_t{a.shared}}) {
    sum = (sum ^ part) * 0x100000001b3;
  }
  return sum;
}

std::optional<address_bytes> read_address(const void* from) noexcept {
  address_bytes a{};
  if (from == nullptr) return std::nullopt;
  std::memcpy(&a, from, offsetof(address_bytes, host));
  if (a.magic != address_magic || a.size != sizeof a) return std::nullopt;
  std::memcpy(&a, from, sizeof a);
  return a.sum == sum_of(a) ? std::optional(a) : std::nullopt;
}

void remember(endpoint& e, const ucp_ep_params_t& params) {
  e.peer_mode =
      (params.field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE) != 0 && params.err_mode == UCP_ERR_HANDLING_MODE_PEER;
  if ((params.field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLER) != 0) {
    e.on_error = params.err_handler.cb;
    e.on_error_argument = params.err_handler.arg;
  }
  if ((params.field_mask & UCP_EP_PARAM_FIELD_USER_DATA) != 0) e.on_error_argument = params.user_data;
  e.owner.endpoints.push_back(&e);
}

}  // namespace

// Wire --------------------------------------------------------------------------------------------------------

void listener::connected(std::shared_ptr<stream> where, std::unique_ptr<packet> first) {
  std::unique_ptr<message> m(static_cast<message*>(first.release()));
  m->at = this;
  m->where = std::move(where);
  owner.receive(std::move(m));
}

void worker::connected(std::shared_ptr<stream> where, std::unique_ptr<packet> first) {
  std::unique_ptr<message> m(static_cast<message*>(first.release()));
  m->where = std::move(where);
  receive(std::move(m));
}

void endpoint::arrived(std::unique_ptr<packet> what) {
  std::unique_ptr<message> m(static_cast<message*>(what.release()));
  m->to = this;
  owner.receive(std::move(m));
}

void endpoint::broken(break_reason why) {
  auto m = std::make_unique<message>(message_kind::broke);
  m->to = this;
  if (why == break_reason::refused) m->status = UCS_ERR_UNREACHABLE;
  if (why == break_reason::timed_out) m->status = UCS_ERR_ENDPOINT_TIMEOUT;
  owner.receive(std::move(m));
}

void post(endpoint& e, std::unique_ptr<message> m) {
  if (!e.connected) {
    if (e.failed == UCS_OK) e.queue.push_back(std::move(m));
    return;
  }
  if (m->kind == message_kind::get && is_one_sided(e)) {
    read_one_sided(e, *m);
    return;
  }
  const std::size_t bytes = envelope_bytes + m->header.size() + m->body.size();
  fabric::of(e.lib.the_world()).send(e.where, e.mine, std::move(m), bytes);
}

void answer_address(worker& w, message& m) {
  library& lib = w.lib;
  fabric& net = fabric::of(lib.the_world());
  // The address of an earlier life, whose worker had the same number: not meant.
  if (m.wanted_life != lib.life) {
    net.close(m.where, side::server);
    return;
  }
  auto& made = lib.make<endpoint>(w);
  lib.count(object_kind::endpoint, -1);
  made.counted = false;
  made.passive = true;
  made.peer_mode = m.peer_mode;
  made.mine = side::server;
  made.where = std::move(m.where);
  made.connected = true;
  made.peer = m.sender;
  made.peer_life = m.sender_life;
  made.peer_card = m.sender_card;
  if (m.shared && m.sender != &lib.owner) made.pair = ++w.pairs[{m.sender->index(), m.sender_life}].accepted;
  w.endpoints.push_back(&made);
  net.attach(made.where, side::server, made);
  auto accepted = std::make_unique<message>(message_kind::accepted);
  accepted->sender = &lib.owner;
  accepted->sender_life = lib.life;
  accepted->sender_card = w.owner.used.card;
  post(made, std::move(accepted));
}

void fail_endpoint(endpoint& e, ucs_status_t status) {
  // Without error mode nothing is promised, and over this library nothing is told.
  if (e.failed != UCS_OK || !e.peer_mode) return;
  e.failed = status;
  e.queue_pair_dead = true;
  e.queue.clear();
  std::erase_if(e.owner.serving, [&e](const served_read& s) { return s.to == &e; });
  if (!e.gone && e.on_error != nullptr) {
    const core_scope core;
    e.on_error(e.on_error_argument, handle_of<ucp_ep_h>(e), status);
  }
  for (const auto& [number, r] : e.owner.outstanding) {
    if (r->on == &e && r->what != request_kind::close) finish_later(*r, status, e.lib.settings.cancel_spread_ns);
  }
  continue_close(e);
}

void detach(endpoint& e, bool quietly) {
  e.queue_pair_dead = true;
  if (e.pair != 0 && !e.passive) e.owner.pairs[{e.peer->index(), e.peer_life}].closed.insert(e.pair);
  std::erase(e.owner.endpoints, &e);
  std::erase_if(e.owner.serving, [&e](const served_read& s) { return s.to == &e; });
  fabric::of(e.lib.the_world()).close(e.where, e.mine, quietly);
}

void continue_close(endpoint& e) {
  if (e.forced && e.operations == 0) {
    // Only now do late bytes stop coming: the close returned long before.
    e.forced = false;
    detach(e, false);
    return;
  }
  if (e.closing == nullptr || e.operations != 0) return;
  if (e.failed != UCS_OK) {
    if (e.closing->ending) return;
    detach(e, false);
    finish_later(*e.closing, e.failed, 0);
    e.closing = nullptr;
    return;
  }
  if (!e.connected || e.fin_sent) return;
  if (e.shared && e.lib.chance().chance(e.lib.settings.idle_flush_permille)) {
    // Nothing of ours waits in the peer's queue, so nobody needs to look at it.
    request& r = *std::exchange(e.closing, nullptr);
    detach(e, true);
    finish_later(r, UCS_OK, 0);
    return;
  }
  e.fin_sent = true;
  post(e, std::make_unique<message>(message_kind::fin));
}

// Listener ----------------------------------------------------------------------------------------------------

ucs_status_t ucp_listener_create(ucp_worker_h handle, const ucp_listener_params_t* params, ucp_listener_h* answer) {
  call c(function::ucp_listener_create, handle);
  worker* const w = c.find_worker(handle);
  if (w == nullptr || (params->field_mask & UCP_LISTENER_PARAM_FIELD_SOCK_ADDR) == 0 ||
      (params->field_mask & UCP_LISTENER_PARAM_FIELD_CONN_HANDLER) == 0) {
    return UCS_ERR_INVALID_PARAM;
  }
  const auto name = read_name(params->sockaddr);
  if (!name) return UCS_ERR_INVALID_ADDR;
  if (const ucs_status_t status = c.fault_status("ucp.listener.create", UCS_ERR_BUSY); status != UCS_OK) return status;
  fabric& net = fabric::of(c.the_world());
  if (name->address != 0 && net.host_at(c.owner(), name->address) != &c.owner()) return UCS_ERR_INVALID_ADDR;
  auto& made = c.lib().make<listener>(*w);
  const auto port = net.listen(c.owner(), name->port, made);
  if (!port) {
    c.lib().retire(made);
    return UCS_ERR_BUSY;
  }
  made.address = name->address;
  made.port = *port;
  made.handler = params->conn_handler;
  w->listeners.push_back(&made);
  *answer = handle_of<ucp_listener_h>(made);
  return UCS_OK;
}

ucs_status_t ucp_listener_query(ucp_listener_h handle, ucp_listener_attr_t* attributes) {
  call c(function::ucp_listener_query, handle);
  auto* const l = c.find<listener>(handle, object_kind::listener);
  if (l == nullptr) return UCS_ERR_INVALID_PARAM;
  if ((attributes->field_mask & UCP_LISTENER_ATTR_FIELD_SOCKADDR) != 0) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(l->address);
    name.sin_port = htons(l->port);
    std::memcpy(&attributes->sockaddr, &name, sizeof name);
  }
  return UCS_OK;
}

ucs_status_t ucp_listener_reject(ucp_listener_h handle, ucp_conn_request_h request_handle) {
  call c(function::ucp_listener_reject, handle);
  auto* const l = c.find<listener>(handle, object_kind::listener);
  auto* const r = c.find<connection_request>(request_handle, object_kind::connection_request);
  if (l == nullptr || r == nullptr || !c.on_thread_of(l->owner)) return UCS_ERR_INVALID_PARAM;
  if (&r->owner != l) {
    c.lib().misuse("foreign handle", "a connection request was rejected through another listener than its own");
    return UCS_ERR_INVALID_PARAM;
  }
  fabric& net = fabric::of(c.the_world());
  net.send(r->where, side::server, std::make_unique<message>(message_kind::rejected), envelope_bytes);
  net.close(r->where, side::server, true);
  --l->owner.undecided;
  c.lib().retire(*r);
  return UCS_OK;
}

void ucp_listener_destroy(ucp_listener_h handle) {
  call c(function::ucp_listener_destroy, handle);
  auto* const l = c.find<listener>(handle, object_kind::listener);
  if (l == nullptr || !c.on_thread_of(l->owner)) return;
  fabric::of(c.the_world()).stop_listening(c.owner(), l->port);
  std::erase(l->owner.listeners, l);
  c.lib().retire(*l);
}

// Worker address ----------------------------------------------------------------------------------------------

ucs_status_t ucp_worker_get_address(ucp_worker_h handle, ucp_address_t** answer, size_t* bytes) {
  call c(function::ucp_worker_get_address, handle);
  worker* const w = c.find_worker(handle);
  if (w == nullptr) return UCS_ERR_INVALID_PARAM;
  if (const ucs_status_t status = c.fault_status("ucp.worker.address", UCS_ERR_NO_MEMORY); status != UCS_OK) {
    return status;
  }
  fabric& net = fabric::of(c.the_world());
  if (w->address_port == 0) {
    const auto port = net.listen(c.owner(), static_cast<std::uint16_t>(first_address_port + w->number), *w);
    if (!port) return UCS_ERR_BUSY;
    w->address_port = *port;
  }
  const transports& allowed = w->owner.allowed;
  address_bytes content{address_magic,
                        sizeof(address_bytes),
                        c.owner().index(),
                        c.lib().life,
                        net.machine_of(c.owner()),
                        w->address_port,
                        allowed.tcp,
                        allowed.shared,
                        0};
  content.sum = sum_of(content);
  auto& made = c.lib().make<worker_address>();
  made.bytes.resize(sizeof content);
  std::memcpy(made.bytes.data(), &content, sizeof content);
  c.lib().addresses.push_back(&made);
  *answer = reinterpret_cast<ucp_address_t*>(made.bytes.data());
  *bytes = made.bytes.size();
  return UCS_OK;
}

void ucp_worker_release_address(ucp_worker_h handle, ucp_address_t* address) {
  call c(function::ucp_worker_release_address, handle);
  if (c.find_worker(handle) == nullptr) return;
  auto& all = c.lib().addresses;
  const auto found = std::ranges::find_if(all, [address](const worker_address* a) {
    return a->bytes.data() == reinterpret_cast<const std::byte*>(address);
  });
  if (found == all.end()) {
    c.lib().misuse("no such handle", "ucp_worker_release_address was given what is no address, or not any more");
    return;
  }
  worker_address& gone = **found;
  all.erase(found);
  std::ranges::fill(gone.bytes, std::byte{0xdd});
  gone.bytes = {};
  c.lib().retire(gone);
}

// Endpoint ----------------------------------------------------------------------------------------------------

namespace {

ucs_status_t create_to_address(call& c, worker& w, const ucp_ep_params_t& params, const address_bytes& to,
                               ucp_ep_h* answer) {
  fabric& net = fabric::of(c.the_world());
  library& lib = c.lib();
  host& there = *c.the_world().hosts()[to.host];
  const bool peer_mode =
      (params.field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE) != 0 && params.err_mode == UCP_ERR_HANDLING_MODE_PEER;
  // Shared memory cannot promise what PEER asks for (F7).
  const bool shared = !peer_mode && w.owner.allowed.shared && to.shared != 0 && net.machine_of(c.owner()) == to.machine;
  if (!shared && !(w.owner.allowed.tcp && to.tcp != 0)) return UCS_ERR_UNREACHABLE;
  // What a dead process offered may be gone, or still be there with nobody behind it.
  if (shared && (!there.alive() || there.life() != to.life) &&
      lib.chance().chance(lib.settings.dead_address_permille)) {
    return UCS_ERR_SHMEM_SEGMENT;
  }
  auto& made = lib.make<endpoint>(w);
  remember(made, params);
  made.shared = shared;
  made.peer = &there;
  made.peer_life = to.life;
  if (shared && &there != &c.owner()) made.pair = ++w.pairs[{there.index(), to.life}].made;
  auto first = std::make_unique<message>(message_kind::connect);
  first->sender = &c.owner();
  first->sender_life = lib.life;
  first->sender_card = w.owner.used.card;
  first->peer_mode = peer_mode;
  first->wanted_life = to.life;
  first->shared = shared;
  if (shared) {
    made.where = net.connect_shared(c.owner(), made, there, to.port, std::move(first), 2 * envelope_bytes);
    c.the_world().log(&c.owner(), hardware_event::driver_lane_shared, made.number);
  } else {
    made.where = net.connect(c.owner(), made, fabric::address_of(there), to.port, std::move(first), 2 * envelope_bytes);
  }
  *answer = handle_of<ucp_ep_h>(made);
  return UCS_OK;
}

}  // namespace

ucs_status_t ucp_ep_create(ucp_worker_h handle, const ucp_ep_params_t* params, ucp_ep_h* answer) {
  call c(function::ucp_ep_create, handle);
  worker* const w = c.find_worker(handle);
  if (w == nullptr) return UCS_ERR_INVALID_PARAM;
  fabric& net = fabric::of(c.the_world());
  const unsigned flags = (params->field_mask & UCP_EP_PARAM_FIELD_FLAGS) != 0 ? params->flags : 0;
  const ucs_status_t refused = c.fault_status("ucp.ep.create", UCS_ERR_NO_MEMORY);

  if ((flags & UCP_EP_PARAMS_FLAGS_CLIENT_SERVER) != 0) {
    if ((params->field_mask & UCP_EP_PARAM_FIELD_SOCK_ADDR) == 0) return UCS_ERR_INVALID_PARAM;
    const auto name = read_name(params->sockaddr);
    if (!name) return UCS_ERR_INVALID_ADDR;
    if (refused != UCS_OK) return refused;
    // Without tcp, or a device on the way, there is nobody to connect to, which shows later.
    const bool way = w->owner.allowed.tcp && reaches(w->owner, name->address);
    const std::uint16_t port = way ? name->port : std::uint16_t{0};
    auto& made = c.lib().make<endpoint>(*w);
    remember(made, *params);
    auto first = std::make_unique<message>(message_kind::connect);
    first->sender = &c.owner();
    first->sender_life = c.lib().life;
    first->sender_card = w->owner.used.card;
    first->address = name->address;
    made.where = net.connect(c.owner(), made, name->address, port, std::move(first), 2 * envelope_bytes);
    *answer = handle_of<ucp_ep_h>(made);
    return UCS_OK;
  }

  if ((params->field_mask & UCP_EP_PARAM_FIELD_REMOTE_ADDRESS) != 0) {
    const auto to = read_address(params->address);
    if (!to || to->host >= c.the_world().hosts().size()) return UCS_ERR_INVALID_ADDR;
    if (refused != UCS_OK) return refused;
    return create_to_address(c, *w, *params, *to, answer);
  }

  if ((params->field_mask & UCP_EP_PARAM_FIELD_CONN_REQUEST) == 0) return UCS_ERR_INVALID_PARAM;
  auto* const r = c.find<connection_request>(params->conn_request, object_kind::connection_request);
  if (r == nullptr) return UCS_ERR_INVALID_PARAM;
  // The request is used up whatever comes of it: after a failure the library has rejected it itself.
  --r->owner.owner.undecided;
  c.lib().retire(*r);
  if (refused != UCS_OK) {
    net.send(r->where, side::server, std::make_unique<message>(message_kind::rejected), envelope_bytes);
    net.close(r->where, side::server, true);
    return refused;
  }
  auto& made = c.lib().make<endpoint>(*w);
  remember(made, *params);
  made.mine = side::server;
  made.where = r->where;
  made.connected = true;
  made.peer = r->client;
  made.peer_life = r->client_life;
  made.peer_card = r->client_card;
  net.attach(made.where, side::server, made);
  auto accepted = std::make_unique<message>(message_kind::accepted);
  accepted->sender = &c.owner();
  accepted->sender_life = c.lib().life;
  accepted->sender_card = w->owner.used.card;
  post(made, std::move(accepted));
  *answer = handle_of<ucp_ep_h>(made);
  return UCS_OK;
}

ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h handle, const ucp_request_param_t* param) {
  call c(function::ucp_ep_close_nbx, handle);
  endpoint* const e = c.find_endpoint(handle);
  if (e == nullptr) return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
  const bool force =
      (param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) != 0 && (param->flags & UCP_EP_CLOSE_FLAG_FORCE) != 0;
  // Before the endpoint is touched (F8).
  if (force && !e->peer_mode) return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
  worker& w = e->owner;
  if (w.progressing) {
    c.lib().misuse("inside a callback", "endpoint " + std::to_string(e->number) + " was closed inside a callback");
    return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
  }
  for (const key* const k : w.keys) {
    if (&k->owner != e || k->uses != 0) continue;
    c.lib().misuse("order of destruction", "endpoint " + std::to_string(e->number) +
                                               " was closed before its idle key " + std::to_string(k->number));
    return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
  }
  c.lib().retire(*e);
  const auto make_request = [&]() -> request& {
    request& r = c.lib().make_request(request_kind::close, w);
    r.on = e;
    if ((param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) != 0) r.callback = param->cb.send;
    if ((param->op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA) != 0) r.user_data = param->user_data;
    w.outstanding.emplace(r.number, &r);
    return r;
  };
  if (force) {
    e->queue.clear();
    e->forced = true;
    e->forced_at = w.progressed;
    // A closed queue pair is a fence; bytes of other lanes may land until what was outstanding has ended.
    e->queue_pair_dead = true;
    // Returns first; what was outstanding ends later, as cancelled, and its bytes may land until then.
    for (const auto& [number, r] : w.outstanding) {
      if (r->on == e) finish_later(*r, UCS_ERR_CANCELED, c.lib().settings.cancel_spread_ns);
    }
    continue_close(*e);
    const bool immediate = (param->op_attr_mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) == 0;
    if (immediate && !c.lib().chance().chance(c.lib().settings.close_posted_permille)) return nullptr;
    request& r = make_request();
    finish_later(r, UCS_OK, c.lib().settings.cancel_spread_ns);
    return handle_of<ucs_status_ptr_t>(r);
  }
  if (e->failed != UCS_OK && e->operations == 0 && c.lib().chance().below(3) == 0) {
    // An error, and the endpoint is gone all the same.
    detach(*e, false);
    return UCS_STATUS_PTR(e->failed);
  }
  request& r = make_request();
  e->closing = &r;
  continue_close(*e);
  return handle_of<ucs_status_ptr_t>(r);
}

}  // namespace holdfast::sim::ucp_double
