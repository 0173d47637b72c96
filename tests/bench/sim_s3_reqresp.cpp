// S3: messages a second through the simulated UCX, fabric and NIC.
//
// REQRESP-16: two hosts, one worker each; the client keeps 16 requests of 1,000 bytes outstanding, the server answers
// each with 64 bytes. Both sleep on their armed workers when there is nothing to do, as core's progress loop does.
// First with active messages; then with GETs of 1,000 bytes, where what asks and what answers counts as a message each
// and the answer is a DMA whose pages and registration are checked. Medians of seven rounds. The rates stand for
// simulated messages by time of the machine that simulates.
#include <holdfast/backends/ucx/ucp_table.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/platform/pages.hpp>
#include <holdfast/platform/poller.hpp>

#include <sim/drivers/symbols.hpp>
#include <sim/hardware/fabric.hpp>
#include <sim/kernel/strategies/fifo.hpp>
#include <sim/kernel/world.hpp>
#include <tests/bench/sim_rows.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace {

namespace hf = holdfast;
namespace bench = holdfast::bench;
namespace sim = holdfast::sim;

constexpr unsigned outstanding_max = 16;
constexpr std::size_t request_bytes = 1'000;
constexpr std::size_t answer_bytes = 64;
constexpr std::size_t page = 4096;

const hf::ucx::ucp_table& ucp() {
  static const hf::ucx::ucp_table table = [] {
    hf::ucx::ucp_table t;
#define HOLDFAST_UCP(name) t.name = reinterpret_cast<decltype(t.name)>(sim::find_driver_symbol("libucp.so.0", #name));
    HOLDFAST_UCP_FUNCTIONS(HOLDFAST_UCP)
#undef HOLDFAST_UCP
    return t;
  }();
  return table;
}

void require(bool holds, const char* what) {
  if (!holds) sim::world::current().violate_and_stop("S3", what);
}

struct meeting {
  std::uint16_t port = 0;
  std::uint64_t address = 0;
  std::array<std::byte, 64> key{};
  bool stop = false;
};

struct process {
  explicit process(sim::host& machine) : platform(machine), waiter(*hf::platform::poller::create(platform)) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    require(ucp().ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, nullptr, &context) == UCS_OK, "context");
    ucp_worker_params_t worker_params{};
    require(ucp().ucp_worker_create(context, &worker_params, &worker) == UCS_OK, "worker");
    int descriptor = -1;
    require(ucp().ucp_worker_get_efd(worker, &descriptor) == UCS_OK && waiter.add(descriptor), "descriptor");
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = 1;
    handler.arg = this;
    handler.cb = [](void* user, const void*, std::size_t, void*, std::size_t, const ucp_am_recv_param_t*) {
      ++static_cast<process*>(user)->received;
      return UCS_OK;
    };
    require(ucp().ucp_worker_set_am_recv_handler(worker, &handler) == UCS_OK, "handler");
  }

  template <class Done>
  void run_until(Done done) {
    for (;;) {
      while (ucp().ucp_worker_progress(worker) != 0)
        if (done()) return;
      if (done()) return;
      if (ucp().ucp_worker_arm(worker) == UCS_OK) {
        waiter.wait(hf::platform::time_point(std::chrono::nanoseconds(sim::world::current().now() + 1'000'000)));
      }
    }
  }
  ucp_ep_h create(ucp_ep_params_t& params) {
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    ucp_ep_h made = nullptr;
    require(ucp().ucp_ep_create(worker, &params, &made) == UCS_OK, "endpoint");
    return made;
  }
  void send(ucp_ep_h ep, const void* bytes, std::size_t count) {
    ucp_request_param_t param = freeing(nullptr);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_EAGER;
    require(!UCS_PTR_IS_ERR(ucp().ucp_am_send_nbx(ep, 1, nullptr, 0, bytes, count, &param)), "send");
  }
  static ucp_request_param_t freeing(void* user) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.user_data = user;
    param.cb.send = [](void* request, ucs_status_t status, void* counter) {
      if (counter != nullptr && status == UCS_OK) ++*static_cast<std::uint64_t*>(counter);
      ucp().ucp_request_free(request);
    };
    return param;
  }
  void close(ucp_ep_h ep) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t request = ucp().ucp_ep_close_nbx(ep, &param);
    if (!UCS_PTR_IS_PTR(request)) return;
    run_until([&] { return ucp().ucp_request_check_status(request) != UCS_INPROGRESS; });
    ucp().ucp_request_free(request);
  }
  void end() {
    ucp().ucp_worker_destroy(worker);
    ucp().ucp_cleanup(context);
  }

  hf::platform::host platform;
  hf::platform::poller waiter;
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  std::uint64_t received = 0;
};

ucp_mem_h map(process& p, std::byte* base) {
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = base;
  params.length = outstanding_max * page;
  ucp_mem_h memory = nullptr;
  require(ucp().ucp_mem_map(p.context, &params, &memory) == UCS_OK, "registration");
  return memory;
}

void serve(sim::host& machine, meeting& met) {
  process p(machine);
  std::byte* const base = *p.platform.pages().allocate(outstanding_max * page);
  const ucp_mem_h memory = map(p, base);
  void* packed = nullptr;
  std::size_t key_bytes = 0;
  require(ucp().ucp_rkey_pack(p.context, memory, &packed, &key_bytes) == UCS_OK && key_bytes <= met.key.size(), "key");
  std::memcpy(met.key.data(), packed, key_bytes);
  ucp().ucp_rkey_buffer_release(packed);
  met.address = reinterpret_cast<std::uint64_t>(base);

  ucp_conn_request_h asked = nullptr;
  sockaddr_in name{};
  name.sin_family = AF_INET;
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&name);
  params.sockaddr.addrlen = sizeof name;
  params.conn_handler.arg = &asked;
  params.conn_handler.cb = [](ucp_conn_request_h request, void* to) {
    *static_cast<ucp_conn_request_h*>(to) = request;
  };
  ucp_listener_h listener = nullptr;
  require(ucp().ucp_listener_create(p.worker, &params, &listener) == UCS_OK, "listener");
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  require(ucp().ucp_listener_query(listener, &attributes) == UCS_OK, "name");
  std::memcpy(&name, &attributes.sockaddr, sizeof name);
  met.port = ntohs(name.sin_port);

  p.run_until([&] { return asked != nullptr; });
  ucp_ep_params_t accepted{};
  accepted.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  accepted.conn_request = asked;
  const ucp_ep_h ep = p.create(accepted);
  const std::array<std::byte, answer_bytes> answer{};
  std::uint64_t answered = 0;
  p.run_until([&] {
    for (; answered < p.received; ++answered) p.send(ep, answer.data(), answer.size());
    return met.stop;
  });
  p.close(ep);
  ucp().ucp_listener_destroy(listener);
  ucp().ucp_mem_unmap(p.context, memory);
  p.platform.pages().free(base, outstanding_max * page);
  p.end();
}

void ask(sim::host& machine, sim::host& server, meeting& met, bool gets, std::uint64_t requests, double* seconds) {
  process p(machine);
  sim::world& w = sim::world::current();
  while (met.port == 0) w.block(sim::op_kind::sleep, 0, w.now() + 1'000);
  std::byte* const base = *p.platform.pages().allocate(outstanding_max * page);
  const ucp_mem_h memory = map(p, base);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(sim::fabric::address_of(server));
  name.sin_port = htons(met.port);
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&name);
  params.sockaddr.addrlen = sizeof name;
  const ucp_ep_h ep = p.create(params);
  p.send(ep, base, 1);
  p.run_until([&] { return p.received == 1; });
  ucp_rkey_h key = nullptr;
  require(ucp().ucp_ep_rkey_unpack(ep, met.key.data(), &key) == UCS_OK, "key");
  p.received = 0;

  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t sent = 0;
  std::uint64_t ended = 0;  // GETs that called back
  const auto put_off = [&] {
    const std::uint64_t done = gets ? ended : p.received;
    for (; sent < requests && sent - done < outstanding_max; ++sent) {
      if (!gets) {
        p.send(ep, base, request_bytes);
        continue;
      }
      ucp_request_param_t param = process::freeing(&ended);
      param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
      std::byte* const to = base + sent % outstanding_max * page;
      const auto request = ucp().ucp_get_nbx(ep, to, request_bytes, met.address, key, &param);
      require(UCS_PTR_IS_PTR(request), "GET");
    }
    return done == requests;
  };
  put_off();
  p.run_until(put_off);
  *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  ucp().ucp_rkey_destroy(key);
  p.close(ep);
  ucp().ucp_mem_unmap(p.context, memory);
  p.platform.pages().free(base, outstanding_max * page);
  p.end();
  met.stop = true;
}

double messages_a_second(bool gets, std::uint64_t requests) {
  sim::fifo_strategy strategy;
  sim::world_settings settings;
  settings.steps_max = UINT64_MAX;
  settings.record_choices = false;
  sim::world world(settings, strategy);
  sim::host& server = world.add_host("a");
  sim::host& client = world.add_host("b");
  meeting met;
  double seconds = 0;
  server.spawn("main", [&] { serve(server, met); });
  client.spawn("main", [&] { ask(client, server, met, gets, requests, &seconds); });
  if (world.run() != sim::run_end::clean) {
    std::fprintf(stderr, "S3: %s: %s\n", world.violated()->invariant.c_str(), world.violated()->message.c_str());
    std::exit(1);
  }
  return 2.0 * static_cast<double>(requests) / seconds;
}

void row(bench::sim_rows& rows, const char* id, bool gets) {
  constexpr double goal = 1.5;
  std::vector<double> rates;
  for (int i = 0; i < 7; ++i) rates.push_back(messages_a_second(gets, 100'000) / 1e6);
  const double rate = bench::median(std::move(rates));
  rows.add(id, rate, "M messages/s", goal, rate >= goal);
}

}  // namespace

int main(int argc, char** argv) {
  messages_a_second(false, 10'000);
  bench::sim_rows rows;
  row(rows, "S3 REQRESP-16, active messages of 1,000 and 64 bytes", false);
  row(rows, "S3 REQRESP-16, GETs of 1,000 bytes", true);
  rows.print(argc, argv);
}
