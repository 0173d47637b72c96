#include "process.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace holdfast::driver_probe {

namespace {

sockaddr_in name_of(std::uint32_t address, std::uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(address);
  name.sin_port = htons(port);
  return name;
}

constexpr std::uint32_t loopback = 0x7f000001;

}  // namespace

std::byte pattern(std::size_t at) noexcept { return static_cast<std::byte>(at * 131 + (at >> 12) * 17 + 7); }

process::process(bench& b, const char* transports) : of(b), ucp(b.ucp) {
  ucp_config_t* config = nullptr;
  require(ucp.ucp_config_read(nullptr, nullptr, &config) == UCS_OK, "no configuration");
  if (transports == nullptr) transports = b.over_memory ? "tcp,posix,sysv,cma,self" : "tcp";
  ucs_status_t status = ucp.ucp_config_modify(config, "TLS", transports);
  if (status == UCS_OK) status = ucp.ucp_config_modify(config, "RCACHE_ENABLE", "n");
  // So that keep-alives have their say within the time that a probe waits.
  if (status == UCS_OK) status = ucp.ucp_config_modify(config, "KEEPALIVE_INTERVAL", "300ms");
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;
  if (status == UCS_OK) status = ucp.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context);
  ucp.ucp_config_release(config);
  require(status == UCS_OK, "no context");
  ucp_worker_params_t worker_params{};
  worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
  require(ucp.ucp_worker_create(context, &worker_params, &worker) == UCS_OK, "no worker");
  require(ucp.ucp_worker_get_efd(worker, &descriptor) == UCS_OK, "no descriptor");
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = 7;
  handler.arg = this;
  handler.cb = [](void* user, const void*, std::size_t, void* data, std::size_t length,
                  const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<process*>(user);
    if (!self.in_progress) ++self.outside;
    ++self.messages;
    self.last_was_descriptor = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    self.last_reply = (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0 ? param->reply_ep : nullptr;
    if (!self.last_was_descriptor) std::memcpy(self.last_message, data, std::min(length, sizeof self.last_message));
    return self.last_was_descriptor && self.refuse_descriptors ? UCS_ERR_REJECTED : UCS_OK;
  };
  require(ucp.ucp_worker_set_am_recv_handler(worker, &handler) == UCS_OK, "no handler");
}

// Endpoints ---------------------------------------------------------------------------------------------------

ucs_status_t process::listen(std::uint16_t port) {
  const sockaddr_in name = name_of(loopback, port);
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&name);
  params.sockaddr.addrlen = sizeof name;
  params.conn_handler.arg = this;
  params.conn_handler.cb = [](ucp_conn_request_h request, void* user) {
    auto& self = *static_cast<process*>(user);
    if (!self.in_progress) ++self.outside;
    self.requests.push_back(request);
  };
  return ucp.ucp_listener_create(worker, &params, &listener);
}

std::uint16_t process::port() {
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  require(ucp.ucp_listener_query(listener, &attributes) == UCS_OK, "the listener has no name");
  sockaddr_in name{};
  std::memcpy(&name, &attributes.sockaddr, sizeof name);
  return ntohs(name.sin_port);
}

ucp_ep_h process::connect_socket(std::uint32_t address, std::uint16_t port, bool peer_mode) {
  const sockaddr_in name = name_of(address, port);
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&name);
  params.sockaddr.addrlen = sizeof name;
  return create(params, peer_mode);
}

ucp_ep_h process::connect_worker(std::span<const std::byte> address, bool peer_mode) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  return create(params, peer_mode);
}

ucp_ep_h process::connect_owner() {
  if (of.over_memory) return connect_worker(std::span(of.shared.worker).first(of.shared.worker_bytes), false);
  return connect_socket(of.owner_address(), of.shared.port, true);
}

ucp_ep_h process::accept(bool peer_mode) {
  require(!requests.empty(), "no connection request");
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  params.conn_request = requests.front();
  requests.erase(requests.begin());
  return create(params, peer_mode);
}

ucp_ep_h process::create(ucp_ep_params_t& params, bool peer_mode) {
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.err_mode = peer_mode ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
  params.err_handler.arg = this;
  params.err_handler.cb = [](void* user, ucp_ep_h, ucs_status_t status) {
    auto& self = *static_cast<process*>(user);
    if (!self.in_progress) ++self.outside;
    ++self.errors;
    self.last_error = status;
  };
  ucp_ep_h made = nullptr;
  created = ucp.ucp_ep_create(worker, &params, &made);
  return made;
}

void process::called(void* request, ucs_status_t status, void* user) {
  const auto* const w = static_cast<const awaited*>(user);
  if (!w->of->in_progress) ++w->of->outside;
  ++w->end->calls;
  w->end->status = status;
  w->of->ucp.ucp_request_free(request);
}

ucp_request_param_t process::callback_to(outcome& end) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &called;
  param.user_data = &awaited_.emplace_back(this, &end);
  return param;
}

namespace {

ucs_status_ptr_t settle(ucs_status_ptr_t answer, outcome& end) {
  if (UCS_PTR_IS_PTR(answer)) return answer;
  end.status = UCS_PTR_STATUS(answer);
  return answer;
}

}  // namespace

ucs_status_ptr_t process::close(ucp_ep_h ep, bool force, outcome& end, unsigned more_flags) {
  ucp_request_param_t param = callback_to(end);
  param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS | more_flags;
  param.flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0;
  return settle(ucp.ucp_ep_close_nbx(ep, &param), end);
}

bool process::close_and_wait(ucp_ep_h ep, bool force) {
  outcome end;
  close(ep, force, end);
  return progress_until([&] { return end.ended(); });
}

std::size_t process::worker_address(std::span<std::byte> into) {
  require(ucp.ucp_worker_get_address != nullptr, "no worker addresses");
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  require(ucp.ucp_worker_get_address(worker, &address, &bytes) == UCS_OK, "no worker address");
  require(bytes <= into.size(), "a worker address of more than 2048 bytes");
  std::memcpy(into.data(), address, bytes);
  ucp.ucp_worker_release_address(worker, address);
  return bytes;
}

unsigned process::progress() {
  in_progress = true;
  const unsigned done = ucp.ucp_worker_progress(worker);
  in_progress = false;
  return done;
}

// Operations --------------------------------------------------------------------------------------------------

ucs_status_ptr_t process::get(ucp_ep_h ep, std::byte* to, std::size_t bytes, std::uint64_t from, ucp_rkey_h key,
                              outcome& end, unsigned attributes) {
  ucp_request_param_t param = callback_to(end);
  param.op_attr_mask |= attributes;
  return settle(ucp.ucp_get_nbx(ep, to, bytes, from, key, &param), end);
}

ucs_status_ptr_t process::send(ucp_ep_h ep, unsigned id, const void* body, std::size_t bytes, outcome& end,
                               unsigned flags) {
  ucp_request_param_t param = callback_to(end);
  param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = flags;
  return settle(ucp.ucp_am_send_nbx(ep, id, nullptr, 0, body, bytes, &param), end);
}

// Memory ------------------------------------------------------------------------------------------------------

ucp_mem_h process::map(std::byte* base, std::size_t bytes, ucs_status_t* status) {
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = base;
  params.length = bytes;
  ucp_mem_h handle = nullptr;
  const ucs_status_t answered = ucp.ucp_mem_map(context, &params, &handle);
  if (status != nullptr) *status = answered;
  require(status != nullptr || answered == UCS_OK, "no registration");
  return handle;
}

void process::unmap(ucp_mem_h handle) { require(ucp.ucp_mem_unmap(context, handle) == UCS_OK, "an unmap that failed"); }

std::uint32_t process::pack(ucp_mem_h handle, std::span<std::byte> into) {
  void* packed = nullptr;
  std::size_t bytes = 0;
  require(ucp.ucp_rkey_pack(context, handle, &packed, &bytes) == UCS_OK, "no packed key");
  require(bytes <= into.size(), "a key of more than 512 bytes");
  std::memcpy(into.data(), packed, bytes);
  ucp.ucp_rkey_buffer_release(packed);
  return static_cast<std::uint32_t>(bytes);
}

void process::destroy_worker() {
  for (ucp_conn_request_h r : requests) ucp.ucp_listener_reject(listener, r);
  requests.clear();
  if (listener != nullptr) ucp.ucp_listener_destroy(listener);
  listener = nullptr;
  ucp.ucp_worker_destroy(worker);
  worker = nullptr;
}

void process::end() {
  if (worker != nullptr) destroy_worker();
  ucp.ucp_cleanup(context);
}

// Client ------------------------------------------------------------------------------------------------------

client::client(bench& b) : of(b), p(b) {
  while (of.shared.ready.load() == 0) of.sleep_ns(ms);
  to = of.pages(offered_bytes);
  memory = p.map(to, offered_bytes);
  ep = p.connect_owner();
  require(p.created == UCS_OK, "no endpoint");
  // A message first: a key is unpacked for lanes that stand.
  outcome sent;
  p.send(ep, 7, "wire", 4, sent, UCP_AM_SEND_FLAG_REPLY);
  require(p.progress_until([&] { return sent.ended(); }) && sent.status == UCS_OK, "a first message did not go");
  require(p.progress_until([&] { return of.shared.messages.load() != 0; }), "a first message did not come");
  require(of.ucp.ucp_ep_rkey_unpack(ep, of.shared.key.data(), &key) == UCS_OK, "no key");
  require(get_and_wait(page), "a first GET did not end");
  require(right(page), "a first GET brought wrong bytes");
}

bool client::right(std::size_t bytes) const {
  for (std::size_t i = 0; i < bytes; ++i)
    if (to[i] != pattern(i)) return false;
  return true;
}

void client::clear() { std::memset(to, 0, offered_bytes); }

void client::get(std::size_t bytes, outcome& end) { p.get(ep, to, bytes, of.shared.address, key, end); }

bool client::get_and_wait(std::size_t bytes, ucs_status_t* status) {
  outcome end;
  get(bytes, end);
  const bool ended = p.progress_until([&] { return end.ended(); });
  if (status != nullptr) *status = end.status;
  return ended && (status != nullptr || end.status == UCS_OK);
}

void client::ask(command what) {
  of.shared.what.store(what);
  const std::uint32_t number = of.shared.asked.fetch_add(1) + 1;
  require(p.progress_until([&] { return of.shared.done.load() == number; }), "the owner did not do what it was asked");
}

void client::release_memory() {
  p.unmap(memory);
  of.give_back(to, offered_bytes);
}

void client::end(bool owner_lives) {
  if (key != nullptr) of.ucp.ucp_rkey_destroy(key);
  if (ep != nullptr) require(p.close_and_wait(ep, !of.over_memory), "an endpoint did not close");
  if (owner_lives) ask(command::stop);
  release_memory();
  p.end();
}

// Probes ------------------------------------------------------------------------------------------------------

void answer(bench& b, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(b.shared.answer, sizeof b.shared.answer, format, arguments);
  va_end(arguments);
}

void run_probe(const probe& p, bench& b) {
  try {
    p.run(b);
  } catch (const failure& f) {
    answer(b, "not decided: %s", f.sentence);
  }
}

}  // namespace holdfast::driver_probe
