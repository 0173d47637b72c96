#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/ucx/devices.hpp>
#include <holdfast/backends/ucx/load.hpp>
#include <holdfast/platform/driver_library.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace holdfast::inline HOLDFAST_ABI::ucx {

namespace {

constexpr const char* variable = "UCX_NET_DEVICES";

// UCX tells its resources only as text: "#      resource 1  :  md 1  dev 1  flags -- tcp/lo".
std::vector<lane> lanes_in(std::string_view text) {
  std::vector<lane> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find(" resource ") == line.npos) continue;
    std::string_view name = line.substr(line.rfind(' ') + 1);
    const std::size_t slash = name.find('/');
    if (slash == name.npos) continue;
    out.push_back({std::string(name.substr(0, slash)), std::string(name.substr(slash + 1))});
  }
  return out;
}

// The others move bytes inside one machine, over no device that could be chosen by this setting.
bool is_network(const lane& one) noexcept {
  constexpr std::string_view inside[] = {"self", "posix", "sysv", "cma", "knem", "xpmem"};
  constexpr std::string_view beginnings[] = {"cuda", "gdr", "rocm", "ze_"};
  return std::ranges::find(inside, one.transport) == std::end(inside) &&
         std::ranges::none_of(beginnings, [&one](std::string_view with) { return one.transport.starts_with(with); });
}

// "mlx5_0" means "mlx5_0:1" as well.
bool is_named(std::string_view device, std::string_view name) noexcept {
  return device == name || (device.starts_with(name) && device.substr(name.size()).starts_with(':'));
}

std::vector<std::string_view> names_in(std::string_view devices) {
  std::vector<std::string_view> out;
  for (std::size_t begin = 0; begin <= devices.size();) {
    const std::size_t end = std::min(devices.find(',', begin), devices.size());
    out.push_back(devices.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

std::vector<std::string> network_devices(const std::vector<lane>& lanes) {
  std::vector<std::string> out;
  for (const lane& one : lanes)
    if (is_network(one) && std::ranges::find(out, one.device) == out.end()) out.push_back(one.device);
  return out;
}

result<std::vector<lane>> lanes_with(const ucp_table& table, const std::string& transports) {
  const auto failed = [&](ucs_status_t status) {
    const char* const words = table.ucs_status_string != nullptr ? table.ucs_status_string(status) : "status of UCX";
    return fail_with_words(error_code::absent, "ucx.devices", "transport.transports " + transports + ": " + words, 0,
                           static_cast<std::uint64_t>(static_cast<std::int64_t>(status)));
  };
  ucp_config_t* config = nullptr;
  ucs_status_t status = table.ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return failed(status);
  status = table.ucp_config_modify(config, "NET_DEVICES", all_devices.data());
  if (status == UCS_OK && transports != "auto") status = table.ucp_config_modify(config, "TLS", transports.c_str());
  ucp_context_h context = nullptr;
  if (status == UCS_OK) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    status = table.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context);
  }
  table.ucp_config_release(config);
  if (status != UCS_OK) return failed(status);
  std::vector<lane> lanes = lanes_of(table, context);
  table.ucp_cleanup(context);
  return lanes;
}

// The setting first: words are cut at their end.
std::string sentence(std::string_view wrong, const std::vector<std::string>& there) {
  constexpr std::size_t shown_max = 20;
  std::string out = "transport.devices: no ";
  out.append(wrong.substr(0, shown_max));
  if (there.empty()) return out + "; there are none";
  out += "; there is ";
  for (std::size_t i = 0; i < there.size(); ++i) {
    const std::string next = (i == 0 ? "" : ", ") + there[i];
    // Room for what says that there are more.
    const std::size_t end = i + 1 == there.size() ? 0 : 5;
    if (out.size() + next.size() + end >= sizeof(error::words)) return out + (i == 0 ? "..." : ", ...");
    out += next;
  }
  return out;
}

}  // namespace

std::vector<lane> lanes_of(const ucp_table& table, ucp_context_h context) {
  if (table.ucp_context_print_info == nullptr) return {};
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const out = ::open_memstream(&text, &bytes);
  if (out == nullptr) return {};
  table.ucp_context_print_info(context, out);
  std::fclose(out);
  std::vector<lane> lanes = lanes_in({text, bytes});
  std::free(text);
  return lanes;
}

ucs_status_t choose_devices(const ucp_table& table, event_log& log, ucp_config_t* config, const std::string& devices) {
  if (devices == all_devices && platform::environment_value(variable).empty()) return UCS_OK;
  warn_if_overridden(log, overridden_setting::devices, variable, devices.c_str());
  return table.ucp_config_modify(config, "NET_DEVICES", devices.c_str());
}

result<void> require_devices(const ucp_table& table, const std::string& transports, const std::string& devices) {
  if (devices == all_devices) return {};
  if (table.ucp_context_print_info == nullptr)
    return fail_with_words(error_code::absent, "ucx.devices", "transport.devices: this UCX does not say what there is");
  const auto lanes = lanes_with(table, transports);
  if (!lanes) return std::unexpected(lanes.error());
  const std::vector<std::string> there = network_devices(*lanes);
  for (const std::string_view name : names_in(devices))
    if (std::ranges::none_of(there, [name](std::string_view device) { return is_named(device, name); }))
      return fail_with_words(error_code::absent, "ucx.devices", sentence(name, there));
  return {};
}

bool uses_devices(const ucp_table& table, ucp_context_h context, std::string_view devices) {
  if (devices == all_devices) return true;
  const std::vector<std::string> used = network_devices(lanes_of(table, context));
  const std::vector<std::string_view> names = names_in(devices);
  const auto is_wanted = [&names](std::string_view device) {
    return std::ranges::any_of(names, [device](std::string_view name) { return is_named(device, name); });
  };
  const auto is_used = [&used](std::string_view name) {
    return std::ranges::any_of(used, [name](std::string_view device) { return is_named(device, name); });
  };
  return std::ranges::all_of(used, is_wanted) && std::ranges::all_of(names, is_used);
}

}  // namespace holdfast::inline HOLDFAST_ABI::ucx
