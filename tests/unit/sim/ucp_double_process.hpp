// A small program over the double of UCX, for tests: one process with a worker, as a backend would drive it.
//
// It runs on fibers, where no test macro may be used: what is wrong becomes a violation of the world ("test").
#pragma once

#include <holdfast/backends/ucx/ucp_table.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/platform/pages.hpp>
#include <holdfast/platform/poller.hpp>
#include <holdfast/platform/thread.hpp>
#include <sim/drivers/symbols.hpp>
#include <sim/drivers/ucp_settings.hpp>
#include <sim/faults/fault_plan.hpp>
#include <sim/hardware/fabric.hpp>
#include <sim/hardware/host_memory.hpp>
#include <sim/hardware/nic.hpp>
#include <sim/kernel/strategies/fifo.hpp>
#include <sim/kernel/strategies/random.hpp>
#include <sim/kernel/world.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace ucp_test {

namespace hf = holdfast;
namespace sim = holdfast::sim;

/// The table, filled as core fills it.
inline const hf::ucx::ucp_table& ucp() {
  static const hf::ucx::ucp_table table = [] {
    hf::ucx::ucp_table t;
#define HOLDFAST_UCP(name) t.name = reinterpret_cast<decltype(t.name)>(sim::find_driver_symbol("libucp.so.0", #name));
    HOLDFAST_UCP_FUNCTIONS(HOLDFAST_UCP)
    HOLDFAST_UCP_OPTIONAL_FUNCTIONS(HOLDFAST_UCP)
#undef HOLDFAST_UCP
    t.ucs_status_string =
        reinterpret_cast<decltype(t.ucs_status_string)>(sim::find_driver_symbol("libucp.so.0", "ucs_status_string"));
    return t;
  }();
  return table;
}

inline void require(bool holds, const char* sentence) {
  if (!holds) sim::world::current().violate_and_stop("test", sentence);
}

inline std::int64_t now() { return sim::world::current().now(); }

/// What a callback leaves.
struct outcome {
  int calls = 0;
  ucs_status_t status = UCS_INPROGRESS;
};

/// What processes tell each other beside the library. Lives outside the worlds.
struct board {
  std::uint16_t port = 0;
  std::uint64_t address = 0;
  std::array<std::byte, 256> key{};
  std::array<std::byte, 256> worker{};  // its address
  bool stop = false;
  int stage = 0;
};

class process {
 public:
  explicit process(sim::host& machine, std::uint64_t features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
                   const char* transports = nullptr, const char* devices = nullptr)
      : machine_(machine), platform_(machine) {
    auto made = hf::platform::poller::create(platform_);
    require(made.has_value(), "a poller");
    poller_.emplace(std::move(*made));
    ucp_config_t* config = nullptr;
    require(ucp().ucp_config_read(nullptr, nullptr, &config) == UCS_OK, "a configuration");
    require(ucp().ucp_config_modify(config, "NO_SUCH_SETTING", "x") == UCS_OK, "unknown names are accepted");
    if (transports != nullptr) {
      require(ucp().ucp_config_modify(config, "TLS", transports) == UCS_OK, "a choice of transports");
    }
    if (devices != nullptr) {
      require(ucp().ucp_config_modify(config, "NET_DEVICES", devices) == UCS_OK, "a choice of devices");
    }
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
    params.features = features;
    params.mt_workers_shared = 1;
    require(ucp().ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context) == UCS_OK, "a context");
    ucp().ucp_config_release(config);
    ucp_worker_params_t worker_params{};
    worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
    require(ucp().ucp_worker_create(context, &worker_params, &worker) == UCS_OK, "a worker");
    require(ucp().ucp_worker_get_efd(worker, &descriptor) == UCS_OK, "a descriptor");
    require(poller_->add(descriptor), "a watched descriptor");
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = 7;
    handler.cb = &received;
    handler.arg = this;
    require(ucp().ucp_worker_set_am_recv_handler(worker, &handler) == UCS_OK, "a handler");
  }
  process(const process&) = delete;
  process& operator=(const process&) = delete;

  // Connecting ----------------------------------------------------------------------------------------------
  std::uint16_t listen(std::uint16_t port = 0) {
    sockaddr_in name = name_of(0, port);
    ucp_listener_params_t params{};
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&name);
    params.sockaddr.addrlen = sizeof name;
    params.conn_handler.cb = &wanted;
    params.conn_handler.arg = this;
    require(ucp().ucp_listener_create(worker, &params, &listener) == UCS_OK, "a listener");
    ucp_listener_attr_t attributes{};
    attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    require(ucp().ucp_listener_query(listener, &attributes) == UCS_OK, "its name");
    std::memcpy(&name, &attributes.sockaddr, sizeof name);
    return ntohs(name.sin_port);
  }
  ucp_ep_h connect(std::uint32_t address, std::uint16_t port, bool peer_mode = true) {
    sockaddr_in name = name_of(address, port);
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&name);
    params.sockaddr.addrlen = sizeof name;
    return create(params, peer_mode);
  }
  ucp_ep_h accept(bool peer_mode = true) {
    require(!requests.empty(), "a connection request");
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
    params.conn_request = requests.front();
    requests.erase(requests.begin());
    return create(params, peer_mode);
  }

  /// The bytes of the worker's address.
  std::array<std::byte, 256> worker_address() {
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    require(ucp().ucp_worker_get_address(worker, &address, &bytes) == UCS_OK, "an address");
    std::array<std::byte, 256> copy{};
    require(bytes <= copy.size(), "one that fits");
    std::memcpy(copy.data(), address, bytes);
    ucp().ucp_worker_release_address(worker, address);
    return copy;
  }
  ucp_ep_h connect_to(const std::array<std::byte, 256>& address, bool peer_mode = false) {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    return create(params, peer_mode);
  }

  // Progress ------------------------------------------------------------------------------------------------
  /// Progress, arm, look again, sleep. False: the time is over.
  template <class Done>
  bool progress_until(Done done, std::int64_t within_ns = 1'000'000'000) {
    const std::int64_t deadline = now() + within_ns;
    for (;;) {
      while (!done() && ucp().ucp_worker_progress(worker) != 0) {
      }
      if (done()) return true;
      if (now() >= deadline) return false;
      const ucs_status_t armed = ucp().ucp_worker_arm(worker);
      if (armed == UCS_ERR_BUSY) continue;
      require(armed == UCS_OK, "an armed worker");
      const auto step = std::min<std::int64_t>(deadline, now() + 1'000'000);
      poller_->wait(hf::platform::time_point(std::chrono::nanoseconds(step)));
    }
  }
  void progress_for(std::int64_t duration_ns) {
    progress_until([] { return false; }, duration_ns);
  }
  bool wait_descriptor(std::int64_t within_ns) {
    const auto cause = poller_->wait(hf::platform::time_point(std::chrono::nanoseconds(now() + within_ns)));
    return cause & hf::platform::wake_cause::descriptor;
  }

  // Operations ----------------------------------------------------------------------------------------------
  ucs_status_ptr_t get(ucp_ep_h ep, void* to, std::size_t bytes, std::uint64_t from, ucp_rkey_h key, outcome& ended) {
    ucp_request_param_t param = callback_to(ended);
    const ucs_status_ptr_t answer = ucp().ucp_get_nbx(ep, to, bytes, from, key, &param);
    if (!UCS_PTR_IS_PTR(answer)) ended.status = UCS_PTR_STATUS(answer);
    return answer;
  }
  ucs_status_ptr_t send(ucp_ep_h ep, const void* bytes, std::size_t count, outcome& ended, unsigned flags = 0) {
    ucp_request_param_t param = callback_to(ended);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_REPLY | flags;
    const ucs_status_ptr_t answer = ucp().ucp_am_send_nbx(ep, 7, nullptr, 0, bytes, count, &param);
    if (!UCS_PTR_IS_PTR(answer)) ended.status = UCS_PTR_STATUS(answer);
    return answer;
  }
  ucs_status_ptr_t close(ucp_ep_h ep, bool force, outcome& ended) {
    ucp_request_param_t param = callback_to(ended);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    const ucs_status_ptr_t answer = ucp().ucp_ep_close_nbx(ep, &param);
    if (!UCS_PTR_IS_PTR(answer)) ended.status = UCS_PTR_STATUS(answer);
    return answer;
  }
  /// Closes and waits until that is over. Keys of the endpoint must be gone.
  void close_now(ucp_ep_h ep, bool force) {
    outcome ended;
    close(ep, force, ended);
    require(progress_until([&] { return ended.status != UCS_INPROGRESS; }), "an endpoint that closes");
  }

  // Memory --------------------------------------------------------------------------------------------------
  std::byte* grant(std::size_t bytes) {
    const auto granted = platform_.pages().allocate(bytes);
    require(granted.has_value(), "pages");
    return *granted;
  }
  hf::platform::pages& pages() { return platform_.pages(); }
  ucp_mem_h map(std::byte* base, std::size_t bytes) {
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = base;
    params.length = bytes;
    ucp_mem_h handle = nullptr;
    map_status = ucp().ucp_mem_map(context, &params, &handle);
    return handle;
  }
  void pack(ucp_mem_h memory, board& to) {
    void* packed = nullptr;
    std::size_t bytes = 0;
    require(ucp().ucp_rkey_pack(context, memory, &packed, &bytes) == UCS_OK, "a packed key");
    require(bytes <= to.key.size(), "a key that fits");
    std::memcpy(to.key.data(), packed, bytes);
    ucp().ucp_rkey_buffer_release(packed);
  }
  ucp_rkey_h unpack(ucp_ep_h ep, const board& from) {
    ucp_rkey_h key = nullptr;
    require(ucp().ucp_ep_rkey_unpack(ep, from.key.data(), &key) == UCS_OK, "an unpacked key");
    return key;
  }

  /// Ends the worker and the context; everything made from them must be gone.
  void destroy() {
    for (ucp_conn_request_h request : requests) ucp().ucp_listener_reject(listener, request);
    if (listener != nullptr) ucp().ucp_listener_destroy(listener);
    ucp().ucp_worker_destroy(worker);
    ucp().ucp_cleanup(context);
  }
  void sleep(std::int64_t duration_ns) {
    sim::world& w = sim::world::current();
    w.block(sim::op_kind::sleep, 0, w.now() + duration_ns);
  }
  sim::host& machine() { return machine_; }

  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  ucp_listener_h listener = nullptr;
  int descriptor = -1;
  ucs_status_t map_status = UCS_OK;
  std::vector<ucp_conn_request_h> requests;
  std::vector<std::string> messages;
  ucs_status_t answer_to_messages = UCS_OK;
  bool last_was_descriptor = false;
  ucp_ep_h last_reply = nullptr;
  // Of the endpoints.
  int errors = 0;
  ucs_status_t last_error = UCS_OK;
  void (*in_error)(process&, ucp_ep_h) = nullptr;

 private:
  static sockaddr_in name_of(std::uint32_t address, std::uint16_t port) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(address);
    name.sin_port = htons(port);
    return name;
  }
  ucp_ep_h create(ucp_ep_params_t& params, bool peer_mode) {
    if (peer_mode) {
      params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
      params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
      params.err_handler.cb = &failed;
      params.err_handler.arg = this;
    }
    ucp_ep_h made = nullptr;
    create_status = ucp().ucp_ep_create(worker, &params, &made);
    return made;
  }
  static ucp_request_param_t callback_to(outcome& ended) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = &called;
    param.user_data = &ended;
    return param;
  }
  static void called(void* request, ucs_status_t status, void* user) {
    auto& ended = *static_cast<outcome*>(user);
    ++ended.calls;
    ended.status = status;
    ucp().ucp_request_free(request);
  }
  static void wanted(ucp_conn_request_h request, void* user) {
    static_cast<process*>(user)->requests.push_back(request);
  }
  static void failed(void* user, ucp_ep_h ep, ucs_status_t status) {
    auto& self = *static_cast<process*>(user);
    ++self.errors;
    self.last_error = status;
    if (self.in_error != nullptr) self.in_error(self, ep);
  }
  static ucs_status_t received(void* user, const void*, std::size_t, void* data, std::size_t length,
                               const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<process*>(user);
    self.last_was_descriptor = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    self.last_reply = (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0 ? param->reply_ep : nullptr;
    self.messages.emplace_back(static_cast<const char*>(data), length);
    return self.answer_to_messages;
  }

  sim::host& machine_;
  hf::platform::host platform_;
  std::optional<hf::platform::poller> poller_;

 public:
  ucs_status_t create_status = UCS_OK;
};

/// A world of two hosts, "a" and "b", and what happened in it.
class pair_of_hosts {
 public:
  explicit pair_of_hosts(std::uint64_t seed = 1, bool random = false)
      : random_(std::nullopt), settings_{.seed = seed}, world(settings_, pick(random)) {}

  sim::random_strategy random_;
  sim::fifo_strategy fifo_;
  sim::world_settings settings_;
  sim::world world;
  sim::host& a = world.add_host("a");
  sim::host& b = world.add_host("b");
  board shared;

  void plan(std::vector<sim::fault> faults) {
    if (const auto wrong = sim::fault_plan::of(world).install(std::move(faults))) world.violate("test", *wrong);
  }
  sim::fabric& fabric() { return sim::fabric::of(world); }
  /// Runs to the end; "" or the violated invariant.
  std::string run() {
    world.run();
    return world.violated() ? world.violated()->invariant : "";
  }
  std::string sentence() const { return world.violated() ? world.violated()->message : ""; }

 private:
  sim::strategy& pick(bool random) {
    if (random) return random_;
    return fifo_;
  }
};

constexpr std::uint32_t address_a = 0x0a000001;

}  // namespace ucp_test
