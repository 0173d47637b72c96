// The devices of a simulated host: the double lists them as UCX 1.13.1 does, uses those that were chosen and no others,
// and core's option transport.devices works over it as over the real library.
//
// How: programs over the table, and runtimes of core, each on a fiber of its host. What is expected of the double where a
// device is not chosen was found out over the real library (tests/ucx/devices_test.cpp).
#include "ucp_double_pair.hpp"

#include <holdfast/base/block.hpp>
#include <holdfast/runtime/runtime.hpp>
#include <holdfast/runtime/ucx_device.hpp>
#include <holdfast/transport/transport.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace ucp_test;

constexpr std::uint64_t features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;

void same(std::string_view found, std::string_view wanted) {
  if (found == wanted) return;
  sim::kernel_scope scope;
  sim::world::current().violate_and_stop("test",
                                         "\"" + std::string(found) + "\" instead of \"" + std::string(wanted) + "\"");
}

/// Runs a program on the first host; "" or what was wrong.
template <class Program>
std::string outcome_of(Program program, bool card = false) {
  pair_of_hosts hosts;
  sim::ucp_settings_of(hosts.a).rdma = card;
  hosts.a.spawn("main", [&] { program(hosts.a); });
  return hosts.run() == "" ? "" : hosts.sentence();
}

void prints(sim::host& machine, const char* transports, const char* devices, std::string_view wanted) {
  process p(machine, features, transports, devices);
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const out = ::open_memstream(&text, &bytes);
  ucp().ucp_context_print_info(p.context, out);
  std::fclose(out);
  same({text, bytes}, wanted);
  std::free(text);
  p.destroy();
}

constexpr const char* everything = R"(#
# UCP context
#
#     component 0  :  tcp
#     component 1  :  posix
#
#            md 0  :  component 0  tcp 
#            md 1  :  component 1  posix 
#
#      resource 0  :  md 0  dev 0  flags -- tcp/lo
#      resource 1  :  md 0  dev 1  flags -- tcp/eth0
#      resource 2  :  md 1  dev 2  flags -- posix/memory
#
)";

constexpr const char* everything_with_card = R"(#
# UCP context
#
#     component 0  :  tcp
#     component 1  :  posix
#     component 2  :  ib
#
#            md 0  :  component 0  tcp 
#            md 1  :  component 1  posix 
#            md 2  :  component 2  mlx5_0 
#
#      resource 0  :  md 0  dev 0  flags -- tcp/lo
#      resource 1  :  md 0  dev 1  flags -- tcp/eth0
#      resource 2  :  md 1  dev 2  flags -- posix/memory
#      resource 3  :  md 2  dev 3  flags -- rc_mlx5/mlx5_0:1
#
)";

constexpr const char* ethernet_alone = R"(#
# UCP context
#
#     component 0  :  tcp
#     component 1  :  posix
#
#            md 0  :  component 0  tcp 
#
#      resource 0  :  md 0  dev 0  flags -- tcp/eth0
#
)";

constexpr const char* memory_alone = R"(#
# UCP context
#
#     component 0  :  tcp
#     component 1  :  posix
#
#            md 0  :  component 1  posix 
#
#      resource 0  :  md 0  dev 0  flags -- posix/memory
#
)";

TEST(UcpDevices, TheTextListsWhatAContextCanUseInTheFormOfTheLibrary) {
  EXPECT_EQ(outcome_of([](sim::host& h) { prints(h, nullptr, nullptr, everything); }), "");
  EXPECT_EQ(outcome_of([](sim::host& h) { prints(h, nullptr, "all", everything); }), "");
  EXPECT_EQ(outcome_of([](sim::host& h) { prints(h, nullptr, nullptr, everything_with_card); }, true), "");
  EXPECT_EQ(outcome_of([](sim::host& h) { prints(h, "tcp", "eth0", ethernet_alone); }), "");
  // The library passes over a name that is not there, with a warning.
  EXPECT_EQ(outcome_of([](sim::host& h) { prints(h, "tcp", "nosuch0,eth0", ethernet_alone); }), "");
  EXPECT_EQ(outcome_of([](sim::host& h) { prints(h, "tcp", "eth0,mlx5_0:1", ethernet_alone); }), "");
  // Memory is no device of the network.
  EXPECT_EQ(outcome_of([](sim::host& h) { prints(h, "posix", "eth0", memory_alone); }), "");
  EXPECT_EQ(outcome_of([](sim::host& h) { prints(h, nullptr, "nosuch0", memory_alone); }), "");
}

TEST(UcpDevices, AContextThatIsClosedIsNotListed) {
  const auto said = outcome_of([](sim::host& h) {
    process p(h);
    const ucp_context_h gone = p.context;
    p.destroy();
    ucp().ucp_context_print_info(gone, stderr);
  });
  EXPECT_NE(said.find("ucp_context_print_info was given ucp context 1, which was closed"), said.npos) << said;
}

TEST(UcpDevices, WithoutADeviceOfTheNetworkTcpIsNotUsable) {
  const auto said = outcome_of([](sim::host&) {
    ucp_config_t* config = nullptr;
    require(ucp().ucp_config_read(nullptr, nullptr, &config) == UCS_OK, "a configuration");
    require(ucp().ucp_config_modify(config, "TLS", "tcp") == UCS_OK, "a choice of transports");
    require(ucp().ucp_config_modify(config, "NET_DEVICES", "nosuch0") == UCS_OK, "a choice of devices");
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = features;
    ucp_context_h context = nullptr;
    require(ucp().ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context) == UCS_ERR_NO_DEVICE,
            "no usable transport");
    ucp().ucp_config_release(config);
  });
  EXPECT_EQ(said, "");
}

/// A runtime of core over some devices.
struct core_settings {
  const char* devices = "all";
  const char* transports = "tcp";
  const char* listen_address = "10.0.0.1:0";
};

hf::result<hf::runtime> make_runtime(hf::platform::host& platform, const core_settings& how) {
  hf::runtime_options options;
  options.pinned.initial_arena_bytes = 16 * page;
  options.recorded_level = hf::event_level::trace;
  hf::ucx_device_options ucx;
  ucx.wire.devices = how.devices;
  ucx.wire.transports = how.transports;
  ucx.transport.listen_address = how.listen_address;
  ucx.transport.progress_spin = {};
  ucx.transport.probe_bytes_max = 64;
  return hf::runtime::create(platform, options, hf::ucx_device(std::move(ucx)));
}

void works(sim::host& machine, const core_settings& how, std::string_view transports) {
  hf::platform::host platform(machine, 2);
  auto made = make_runtime(platform, how);
  if (!made) same(made.error().text(), "");
  same(made->peers()->found().wire.transports, transports);
  same(made->peers()->get_absent_because().text(), hf::error{}.text());
  require(made->peers()->get_works(), "GETs that work");
  for (const hf::event_record& one : made->events().copy_recent()) {
    require(one.id != hf::event_id::setting_without_effect ||
                one.fields[0] != static_cast<std::uint64_t>(hf::transport::setting_number::devices),
            "a choice that has its effect");
  }
  const auto report = made->async_shutdown(made->now() + std::chrono::seconds(5), hf::block);
  require(report && report->clean(), "a shutdown that leaves nothing");
}

void refused(sim::host& machine, const core_settings& how, std::string_view sentence) {
  hf::platform::host platform(machine, 2);
  auto made = make_runtime(platform, how);
  require(!made, "a refusal");
  require(made.error().code == hf::error_code::absent, "what is not there");
  if (made.error().text().find(sentence) == std::string::npos) same(made.error().text(), sentence);
}

TEST(UcpDevices, CoreUsesTheDevicesThatAreNamed) {
  EXPECT_EQ(outcome_of([](sim::host& h) { works(h, {}, "tcp and posix"); }), "");
  EXPECT_EQ(outcome_of([](sim::host& h) { works(h, {.devices = "eth0"}, "tcp over eth0 and posix"); }), "");
  EXPECT_EQ(outcome_of([](sim::host& h) { works(h, {.devices = "lo,eth0"}, "tcp over lo,eth0 and posix"); }), "");
  EXPECT_EQ(outcome_of([](sim::host& h) {
              works(h, {.devices = "lo", .listen_address = "127.0.0.1:0"}, "tcp over lo and posix");
            }),
            "");
  for (const char* const card : {"mlx5_0:1", "mlx5_0"}) {
    EXPECT_EQ(outcome_of(
                  [card](sim::host& h) { works(h, {.devices = card}, "tcp over " + std::string(card) + " and posix"); },
                  true),
              "");
  }
}

TEST(UcpDevices, CoreRefusesADeviceThatIsNotThereByNameWithThoseThatAre) {
  for (const char* const devices : {"nosuch0", "eth0,nosuch0", "nosuch0,eth0"}) {
    EXPECT_EQ(outcome_of([devices](sim::host& h) {
                refused(h, {.devices = devices}, "transport.devices: no nosuch0; there is lo, eth0");
              }),
              "");
  }
  EXPECT_EQ(outcome_of([](sim::host& h) {
              refused(h, {.devices = "mlx5_0:1"}, "transport.devices: no mlx5_0:1; there is lo, eth0");
            }),
            "");
  EXPECT_EQ(outcome_of(
                [](sim::host& h) {
                  refused(h, {.devices = "mlx5_1:1"}, "transport.devices: no mlx5_1:1; there is lo, eth0, mlx5_0:1");
                },
                true),
            "");
  EXPECT_EQ(outcome_of([](sim::host& h) {
              refused(h, {.devices = "eth0", .transports = "posix"}, "transport.devices: no eth0; there are none");
            }),
            "");
}

TEST(UcpDevices, OverAListenAddressOfNoDeviceNamedNothingCanBeFetched) {
  const auto absent = [](sim::host& machine, const core_settings& how) {
    hf::platform::host platform(machine, 2);
    auto made = make_runtime(platform, how);
    if (!made) same(made.error().text(), "");
    require(!made->peers()->get_works(), "no GET");
    const hf::error& why = made->peers()->get_absent_because();
    require(why.code == hf::error_code::absent, "GETs that are absent");
    if (why.text().find("Destination is unreachable") == std::string::npos) same(why.text(), "unreachable");
    const auto report = made->async_shutdown(made->now() + std::chrono::seconds(5), hf::block);
    require(report && report->clean(), "a shutdown that leaves nothing");
  };
  EXPECT_EQ(outcome_of([&](sim::host& h) { absent(h, {.devices = "eth0", .listen_address = "127.0.0.1:0"}); }), "");
  EXPECT_EQ(outcome_of([&](sim::host& h) { absent(h, {.devices = "lo"}); }), "");
}

// Host b asks for a connection to host a.
std::string connecting(const char* at_a, const char* at_b, ucs_status_t error_at_b, unsigned requests_at_a) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] {
    process p(hosts.a, features, "tcp", at_a);
    hosts.shared.port = p.listen();
    p.progress_until([&] { return hosts.shared.stop; }, 60'000'000'000);
    require(p.requests.size() == requests_at_a, "as many requests as expected");
    p.destroy();
  });
  hosts.b.spawn("main", [&] {
    process p(hosts.b, features, "tcp", at_b);
    while (hosts.shared.port == 0) p.sleep(1'000);
    const ucp_ep_h ep = p.connect(address_a, hosts.shared.port);
    require(p.create_status == UCS_OK, "an endpoint: what is wrong shows later");
    p.progress_until([&] { return p.errors != 0; }, 10'000'000'000);
    require(p.last_error == error_at_b, "the error that is expected");
    p.close_now(ep, true);
    hosts.shared.stop = true;
    p.destroy();
  });
  return hosts.run() == "" ? "" : hosts.sentence();
}

TEST(UcpDevices, AnAddressOfNoDeviceChosenIsUnreachable) {
  EXPECT_EQ(connecting("all", "lo", UCS_ERR_UNREACHABLE, 0), "");
  EXPECT_EQ(connecting("all", "eth0", UCS_OK, 1), "") << "the request waits, and nobody decides";
}

TEST(UcpDevices, AConnectionThatComesOverADeviceNotChosenIsNeverAnswered) {
  EXPECT_EQ(connecting("lo", "all", UCS_OK, 0), "");
  EXPECT_EQ(connecting("lo,eth0", "all", UCS_OK, 1), "");
}

// Between two hosts with a card, b reads from a, whose process does not run.
std::string reading_without_the_owner(const char* at_a, const char* at_b, bool arrives) {
  pair_of_hosts hosts;
  for (sim::host* const h : {&hosts.a, &hosts.b}) sim::ucp_settings_of(*h).rdma = true;
  hosts.a.spawn("main", [&] {
    process p(hosts.a, features, nullptr, at_a);
    std::byte* const base = p.grant(page);
    for (std::size_t i = 0; i < page; ++i) base[i] = pattern(i);
    const ucp_mem_h memory = p.map(base, page);
    p.pack(memory, hosts.shared);
    hosts.shared.address = reinterpret_cast<std::uint64_t>(base);
    hosts.shared.port = p.listen();
    require(p.progress_until([&] { return !p.requests.empty(); }), "a request");
    const ucp_ep_h ep = p.accept();
    p.progress_until([&] { return hosts.shared.stop; }, 60'000'000'000);
    p.close_now(ep, true);
    require(ucp().ucp_mem_unmap(p.context, memory) == UCS_OK, "an unmap that answers");
    p.pages().free(base, page);
    p.destroy();
  });
  hosts.b.spawn("main", [&] {
    process p(hosts.b, features, nullptr, at_b);
    while (hosts.shared.port == 0) p.sleep(1'000);
    std::byte* const to = p.grant(page);
    const ucp_mem_h memory = p.map(to, page);
    const ucp_ep_h ep = p.connect(address_a, hosts.shared.port);
    outcome hello;
    p.send(ep, "x", 1, hello);
    require(p.progress_until([&] { return hello.status == UCS_OK; }), "a connection");
    const ucp_rkey_h key = p.unpack(ep, hosts.shared);
    hosts.a.pause();
    outcome got;
    p.get(ep, to, page, hosts.shared.address, key, got);
    const bool came = p.progress_until([&] { return got.status == UCS_OK; }, 100'000'000);
    require(came == arrives, "bytes that come without the owner, or not");
    hosts.a.resume();
    require(p.progress_until([&] { return got.status == UCS_OK; }), "bytes");
    ucp().ucp_rkey_destroy(key);
    p.close_now(ep, true);
    require(ucp().ucp_mem_unmap(p.context, memory) == UCS_OK, "an unmap that answers");
    p.pages().free(to, page);
    hosts.shared.stop = true;
    p.destroy();
  });
  return hosts.run() == "" ? "" : hosts.sentence();
}

TEST(UcpDevices, ACardIsUsedWhereBothSidesChoseIt) {
  EXPECT_EQ(reading_without_the_owner("all", "all", true), "");
  EXPECT_EQ(reading_without_the_owner("mlx5_0:1", "eth0,mlx5_0:1", true), "");
  EXPECT_EQ(reading_without_the_owner("eth0", "all", false), "");
  EXPECT_EQ(reading_without_the_owner("all", "eth0", false), "");
}

}  // namespace
