#include <holdfast/platform/abi.hpp>

#include "info/findings.hpp"

#include <holdfast/options/value.hpp>

#include <nlohmann/json.hpp>

namespace holdfast::info {

namespace {

using json = nlohmann::ordered_json;

json bytes_or_unlimited(std::uint64_t bytes) { return bytes == UINT64_MAX ? json("unlimited") : json(bytes); }

json backends(const findings& all) {
  json out = json::array();
  for (const backend& one : all.backends) {
    json lanes = json::array();
    for (const lane& l : one.lanes)
      lanes.push_back({{"transport", l.transport}, {"device", l.device}, {"allowed", l.allowed}});
    out.push_back({{"kind", one.kind},
                   {"state", one.found ? "found" : "absent"},
                   {"version", one.version},
                   {one.found ? "text" : "reason", one.text},
                   {"lanes", std::move(lanes)}});
  }
  return out;
}

json devices(const findings& all) {
  json out = json::array();
  for (const tool::nic& device : all.nics) {
    json ports = json::array();
    for (const tool::nic_port& port : device.ports)
      ports.push_back({{"port", port.number}, {"state", port.state}, {"link", port.link}});
    out.push_back({{"name", device.name}, {"firmware", device.firmware}, {"ports", std::move(ports)}});
  }
  return out;
}

json machine(const findings& all) {
  json huge = json::array(), nodes = json::array();
  for (const tool::huge_page_pool& pool : all.huge_pages)
    huge.push_back({{"page_bytes", pool.page_bytes}, {"pages", pool.pages}, {"free", pool.free_pages}});
  for (const tool::numa_node& node : all.numa_nodes)
    nodes.push_back({{"node", node.id},
                     {"processors", node.processors},
                     {"memory_bytes", node.total_bytes},
                     {"free_bytes", node.free_bytes}});
  return {{"system", all.system.name},
          {"architecture", all.system.architecture},
          {"processors", all.processors},
          {"memory_bytes", all.memory_bytes},
          {"page_bytes", all.page_bytes},
          {"huge_pages", std::move(huge)},
          {"transparent_huge_pages", all.transparent_huge_pages},
          {"numa_nodes", std::move(nodes)}};
}

json process(const findings& all) {
  json signals = json::object();
  for (const tool::signal_owner& signal : all.signals) signals[signal.signal] = signal.owner;
  return {{"locked_bytes_soft", bytes_or_unlimited(all.locked.soft_bytes)},
          {"locked_bytes_hard", bytes_or_unlimited(all.locked.hard_bytes)},
          {"cap_ipc_lock", all.may_lock_more ? json(*all.may_lock_more) : json()},
          {"mappings", all.mappings.in_use},
          {"max_map_count", all.mappings.limit ? json(*all.mappings.limit) : json()},
          {"fork_protection", all.pages_can_be_kept_from_children},
          {"memory_functions_patched", all.memory_functions_patched},
          {"signals", std::move(signals)},
          {"ucx_variables", all.ucx_variables}};
}

json configuration(const findings& all) {
  namespace library = holdfast::options;
  json out = json::array();
  const auto table = library::option_table();
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto which = static_cast<library::option_id>(i);
    const auto& setting = all.configuration.of(which);
    json row = {{"name", table[i].name}, {"value", library::print_value(table[i], setting.value)}};
    if (library::is_number(table[i].kind) && table[i].kind != library::option_kind::boolean)
      row["number"] = setting.value.number;
    row["origin"] = library::name_of(setting.from.from);
    row["where"] = all.configuration.origin_text(which);
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace

std::string to_json(const findings& all) {
  json out;
  out["version"] = all.version;
  out["build"] = all.build;
  out["warnings"] = all.warnings;
  out["backends"] = backends(all);
  out["rdma_devices"] = devices(all);
  out["machine"] = machine(all);
  out["process"] = process(all);
  out["file"] = all.file.empty() ? json() : json(all.file);
  out["options"] = configuration(all);
  // Names of files and words of providers need not be UTF-8.
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace holdfast::info
