// The devices of a simulated host: which of them a context may use, what they reach, and the text that lists them.
#include <sim/drivers/ucp_double.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace holdfast::sim::ucp_double {

namespace {

constexpr const char* loopback_name = "lo";
constexpr const char* ethernet_name = "eth0";
constexpr const char* card_name = "mlx5_0:1";

/// What the text calls a resource: a transport over a device, from a memory domain.
struct resource {
  const char* domain;
  const char* transport;
  const char* device;
};

std::vector<resource> resources_of(const context& c) {
  std::vector<resource> out;
  if (c.allowed.tcp && c.used.loopback) out.push_back({"tcp", "tcp", loopback_name});
  if (c.allowed.tcp && c.used.ethernet) out.push_back({"tcp", "tcp", ethernet_name});
  if (c.allowed.shared) out.push_back({"posix", "posix", "memory"});
  if (c.allowed.tcp && c.used.card) out.push_back({"mlx5_0", "rc_mlx5", card_name});
  return out;
}

}  // namespace

devices parse_devices(std::string_view text) noexcept {
  devices found{false, false, false};
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    if (one == "all") found = {true, true, true};
    if (one == loopback_name) found.loopback = true;
    if (one == ethernet_name) found.ethernet = true;
    if (one == card_name || one == "mlx5_0") found.card = true;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return found;
}

bool reaches(const context& from, std::uint32_t address) noexcept {
  return address >> 24 == 127 ? from.used.loopback : from.used.ethernet || from.used.card;
}

// As UCX 1.13.1 prints it.
void ucp_context_print_info(ucp_context_h handle, FILE* stream) {
  call c(function::ucp_context_print_info, handle, call::at_once{});
  const auto* const found = c.find<context>(handle, object_kind::context);
  if (found == nullptr) return;
  const std::vector<resource> all = resources_of(*found);
  std::fprintf(stream, "#\n# UCP context\n#\n");
  std::vector<std::string_view> components{"tcp", "posix"};
  if (c.lib().settings.rdma) components.push_back("ib");
  for (std::size_t i = 0; i < components.size(); ++i)
    std::fprintf(stream, "#     component %-2zu :  %s\n", i, components[i].data());
  std::fprintf(stream, "#\n");
  std::vector<std::string_view> domains, devices;
  const auto number_in = [](std::vector<std::string_view>& list, std::string_view name) {
    const auto at = std::ranges::find(list, name);
    const auto number = static_cast<std::size_t>(at - list.begin());
    if (at == list.end()) list.push_back(name);
    return number;
  };
  for (const resource& one : all) {
    const std::size_t before = domains.size();
    const std::size_t domain = number_in(domains, one.domain);
    if (domain < before) continue;
    const std::string_view component = one.domain == std::string_view("mlx5_0") ? "ib" : one.domain;
    std::fprintf(stream, "#            md %-2zu :  component %-2zu %s \n", domain, number_in(components, component),
                 one.domain);
  }
  std::fprintf(stream, "#\n");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t domain = number_in(domains, all[i].domain);
    const std::size_t device = number_in(devices, all[i].device);
    std::fprintf(stream, "#      resource %-2zu :  md %-2zu dev %-2zu flags -- %s/%s\n", i, domain, device,
                 all[i].transport, all[i].device);
  }
  std::fprintf(stream, "#\n");
}

}  // namespace holdfast::sim::ucp_double
