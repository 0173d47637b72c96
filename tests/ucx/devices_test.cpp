// Proves that transport.devices chooses UCX's network devices, over real UCX: those that are named are used and no
// others, also in what UCX itself says; a name that is not there is refused with the setting, the name and what there is;
// GETs work where the listen address is of a device named, and are absent otherwise; and settings of ours that win over
// variables of the operator's are told.
#include <holdfast/platform/abi.hpp>

#include "tests/ucx/harness.hpp"

#include <holdfast/backends/ucx/inspect.hpp>

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::testing {
namespace {

ucx::wire_settings over(std::string devices) {
  ucx::wire_settings out;
  out.devices = std::move(devices);
  return out;
}

std::string refusal_of(const std::string& devices) {
  side own({}, over(devices));
  return own.failure() ? own.failure()->text() : "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

// Of the events `setting_overridden`: how many name this setting.
std::size_t told(const side& of, ucx::overridden_setting which) {
  const auto events = of.events(event_id::setting_overridden);
  return static_cast<std::size_t>(std::ranges::count_if(
      events, [which](const event_record& one) { return one.fields[0] == static_cast<std::uint64_t>(which); }));
}

class scoped_variable {
 public:
  scoped_variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    ::setenv(name, value, 1);
  }
  ~scoped_variable() {
    if (before_)
      ::setenv(name_, before_->c_str(), 1);
    else
      ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(ucx_devices, a_named_device_is_used_and_no_other) {
  for (const bool shared_memory : {false, true}) {
    tp::settings values;
    values.shared_memory = shared_memory;
    side own(values, over("lo"));
    ASSERT_FALSE(own.failure()) << own.failure()->text();
    EXPECT_TRUE(own.net().get_works());
    EXPECT_TRUE(contains(own.net().found().wire.transports, "tcp over lo")) << own.net().found().wire.transports;
    EXPECT_EQ(own.net().found().shares_memory, shared_memory);
    for (const event_record& one : own.events(event_id::setting_without_effect))
      EXPECT_NE(one.fields[0], static_cast<std::uint64_t>(tp::setting_number::devices));
  }
  side looks;
  const auto found = ucx::inspect(looks.log(), ucx::default_library, "tcp", "lo");
  ASSERT_TRUE(found) << found.error().text();
  ASSERT_EQ(found->lanes.size(), 1u);
  EXPECT_EQ(found->lanes[0].transport, "tcp");
  EXPECT_EQ(found->lanes[0].device, "lo");
}

TEST(ucx_devices, a_device_that_is_not_there_is_refused_by_name_with_those_that_are) {
  for (const std::string devices : {"nosuch0", "lo,nosuch0", "nosuch0,lo"}) {
    const std::string said = refusal_of(devices);
    EXPECT_TRUE(contains(said, "absent")) << said;
    EXPECT_TRUE(contains(said, "transport.devices: no nosuch0; there is ")) << said;
    EXPECT_TRUE(contains(said, "lo")) << said;
  }
  // UCX has no such words here: neither a choice by exclusion, nor all of them and another.
  EXPECT_TRUE(contains(refusal_of("^lo"), "transport.devices: no ^lo; there is "));
  EXPECT_TRUE(contains(refusal_of("all,lo"), "transport.devices: no all; there is "));
  // A name as long as a setting may be does not hide which setting it was.
  EXPECT_TRUE(contains(refusal_of(std::string(255, 'x')), "transport.devices: no xxxxxxxxxxxxxxxxxxxx; there is "));
}

/// A device of tcp that is not the loopback, and its address for a listener.
struct other_device {
  std::string name;
  std::string address;
};

std::optional<other_device> find_other_device() {
  side looks;
  const auto all = ucx::inspect(looks.log(), ucx::default_library, "tcp");
  ifaddrs* first = nullptr;
  if (!all || ::getifaddrs(&first) != 0) return std::nullopt;
  std::optional<other_device> found;
  for (const ifaddrs* one = first; one != nullptr && !found; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const std::string name = one->ifa_name;
    if (name == "lo" || std::ranges::none_of(all->lanes, [&](const auto& lane) { return lane.device == name; }))
      continue;
    char text[INET_ADDRSTRLEN];
    const auto* const address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text)) != nullptr)
      found = other_device{name, std::string(text) + ":0"};
  }
  ::freeifaddrs(first);
  return found;
}

TEST(ucx_devices, another_device_than_the_loopback_is_used_where_the_listen_address_is_its_own) {
  const auto other = find_other_device();
  if (!other) GTEST_SKIP() << "this machine has no other device with an address";
  tp::settings values;
  values.listen_address = other->address;
  for (const std::string& devices : {other->name, "lo," + other->name}) {
    side own(values, over(devices));
    ASSERT_FALSE(own.failure()) << own.failure()->text();
    EXPECT_TRUE(own.net().get_works()) << own.net().get_absent_because().text();
    EXPECT_TRUE(contains(own.net().found().wire.transports, "tcp over " + devices));
  }
}

TEST(ucx_devices, where_the_listen_address_is_of_no_device_named_gets_are_absent) {
  const auto other = find_other_device();
  if (!other) GTEST_SKIP() << "this machine has no other device with an address";
  tp::settings values;
  for (const auto& [devices, address] : {std::pair{other->name, values.listen_address}, {"lo", other->address}}) {
    values.listen_address = address;
    side own(values, over(devices));
    ASSERT_FALSE(own.failure()) << own.failure()->text();
    EXPECT_FALSE(own.net().get_works());
    const error& why = own.net().get_absent_because();
    EXPECT_EQ(why.code, error_code::absent);
    EXPECT_TRUE(contains(why.text(), "Destination is unreachable")) << why.text();
  }
}

TEST(ucx_devices, with_transports_that_use_no_network_there_is_none) {
  ucx::wire_settings values = over("lo");
  values.transports = "posix,self";
  side own({}, values);
  ASSERT_TRUE(own.failure());
  EXPECT_TRUE(contains(own.failure()->text(), "transport.devices: no lo; there are none")) << own.failure()->text();
}

TEST(ucx_devices, a_refused_transport_is_named_with_its_setting) {
  ucx::wire_settings values;
  values.transports = "nosuchtransport";
  side own({}, values);
  ASSERT_TRUE(own.failure());
  EXPECT_TRUE(contains(own.failure()->text(), "transport.transports nosuchtransport: ")) << own.failure()->text();
}

TEST(ucx_devices, the_setting_wins_over_the_variable_and_says_so) {
  const scoped_variable theirs("UCX_NET_DEVICES", "nosuch0");
  for (const std::string devices : {"all", "lo"}) {
    side own({}, over(devices));
    ASSERT_FALSE(own.failure()) << own.failure()->text();
    EXPECT_GE(told(own, ucx::overridden_setting::devices), 1u);
    EXPECT_TRUE(own.net().get_works());
  }
}

TEST(ucx_devices, variables_that_are_set_before_loading_are_told_when_they_were_set_otherwise) {
  // Loading again finds the same library and looks at the variables again.
  side looks;
  {
    const scoped_variable theirs("UCX_TCP_CM_REUSEADDR", "n");
    ASSERT_TRUE(ucx::load_ucp(looks.log()));
  }
  EXPECT_EQ(told(looks, ucx::overridden_setting::tcp_reuse), 1u);
  const scoped_variable ours("UCX_TCP_CM_REUSEADDR", "y");
  ASSERT_TRUE(ucx::load_ucp(looks.log()));
  EXPECT_EQ(told(looks, ucx::overridden_setting::tcp_reuse), 1u);
}

TEST(ucx_devices, a_library_that_is_not_there_is_named_with_its_setting) {
  side looks;
  const auto table = ucx::load_ucp(looks.log(), "libnosuchucp.so.0");
  ASSERT_FALSE(table);
  EXPECT_TRUE(contains(table.error().text(), "transport.ucx_library: libnosuchucp.so.0: ")) << table.error().text();
}

}  // namespace
}  // namespace holdfast::testing
