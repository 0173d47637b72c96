#include <holdfast/platform/abi.hpp>

#include "info/findings.hpp"

#include <holdfast/backends/ucx/inspect.hpp>
#include <holdfast/backends/ucx/wire_ucx.hpp>
#include <holdfast/environment.hpp>
#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/process.hpp>
#include <holdfast/runtime/configured.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

extern "C" char** environ;

namespace holdfast::info {

namespace {

using holdfast::options::configuration;
using holdfast::options::option_id;

std::string words_of(const error& why) {
  std::string text = why.words[0] != '\0' ? why.words : std::string(name_of(why.code));
  // An error holds the beginning of a provider's words.
  if (text.size() + 1 == sizeof why.words) text += "...";
  return text;
}

bool same(const ucx::lane& a, const ucx::lane& b) { return a.transport == b.transport && a.device == b.device; }

backend find_ucx(const configuration& options) {
  backend out{"ucx", false, {}, {}, {}};
  platform::clock clock;
  event_log log(clock, 16, event_level::error);
  const std::string& library = options.text(option_id::transport_ucx_library);
  const std::string& transports = options.text(option_id::transport_transports);
  const std::string& devices = options.text(option_id::transport_devices);
  // Lanes through the machine's memory get a context of their own, where the transports are those that they go with.
  const bool beside =
      options.number(option_id::transport_shared_memory) != 0 && ucx::destroying_is_fence(configured_ucx(options).wire);
  const auto used = ucx::inspect(log, library.c_str(), transports, devices);
  const auto all = ucx::inspect(log, library.c_str(), "all");
  if (all) {
    out.version = all->version;
    for (const auto& one : all->lanes) {
      const bool allowed =
          used && (std::ranges::any_of(used->lanes, [&one](const auto& other) { return same(one, other); }) ||
                   (beside && one.transport == "posix"));
      out.lanes.push_back({one.transport, one.device, allowed});
    }
  }
  out.found = used.has_value();
  if (used) {
    out.version = used->version;
    out.text = "built for " + used->compiled_for + " or newer";
  } else {
    out.text = words_of(used.error());
    // Some name their setting themselves.
    if (all && !out.text.starts_with("transport.")) out.text += " with transport.transports " + transports;
  }
  return out;
}

std::string absent_verbs(const std::vector<tool::nic>& devices) {
  const std::string text = "not in this version; ";
  if (devices.empty()) return text + "the kernel knows no RDMA device";
  return text + "UCX reaches the RDMA devices below";
}

std::string absent_cuda() {
  std::ifstream driver("/proc/driver/nvidia/version");
  std::string line;
  return std::getline(driver, line) ? "not in this version; " + line
                                    : "not in this version; no NVIDIA driver is loaded";
}

std::vector<std::string> variables_of_ucx() {
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (std::string_view(*entry).starts_with("UCX_")) out.emplace_back(*entry);
  std::ranges::sort(out);
  return out;
}

void add_warnings(findings& all) {
  all.warnings = all.configuration.warnings();
  const std::uint64_t budget = all.configuration.number(option_id::pinned_registered_bytes_budget);
  if (!all.may_lock_more.value_or(false) && budget > all.locked.soft_bytes)
    all.warnings.push_back("pinned.registered_bytes_budget allows " + tool::about_bytes_text(budget) +
                           ", but this process may lock " + tool::about_bytes_text(all.locked.soft_bytes) +
                           " only: raise RLIMIT_MEMLOCK (ulimit -l) or give CAP_IPC_LOCK");
  if (budget > all.memory_bytes && all.memory_bytes != 0)
    all.warnings.push_back("pinned.registered_bytes_budget allows " + tool::about_bytes_text(budget) +
                           ", more than this machine's memory");
  if (all.mappings.limit && all.mappings.in_use > *all.mappings.limit / 2)
    all.warnings.push_back("more than half of the mappings that vm.max_map_count allows are in use");
  if (all.memory_functions_patched)
    all.warnings.push_back(
        "mmap or munmap of this process is patched, by a library that was loaded before Holdfast could "
        "tell it not to");
  for (const tool::signal_owner& signal : all.signals)
    if (signal.owner.find("libucs") != std::string::npos)
      all.warnings.push_back(signal.signal + " is handled by UCX: it was loaded before Holdfast could tell it not to");
}

}  // namespace

findings find(configuration options) {
  findings out;
  out.version = HOLDFAST_VERSION;
  out.build = tool::program_build_id();
  out.ucx_variables = variables_of_ucx();
  out.nics = tool::nics();
  out.backends.push_back(find_ucx(options));
  out.backends.push_back({"host", true, {}, "locks pages in place, for this process alone; no transfers", {}});
  out.backends.push_back({"verbs", false, {}, absent_verbs(out.nics), {}});
  out.backends.push_back({"cuda", false, {}, absent_cuda(), {}});
  out.system = tool::system_name();
  out.processors = tool::processors();
  out.memory_bytes = tool::memory_bytes();
  out.page_bytes = tool::page_bytes();
  out.huge_pages = tool::huge_pages();
  out.transparent_huge_pages = tool::transparent_huge_pages();
  out.numa_nodes = tool::numa_nodes();
  out.locked = tool::locked_memory_limits();
  out.may_lock_more = tool::may_lock_beyond_limits();
  out.mappings = tool::mappings();
  out.pages_can_be_kept_from_children = tool::pages_can_be_kept_from_children();
  out.memory_functions_patched = platform::look_at_process().memory_functions_patched;
  out.signals = tool::signal_owners();
  out.file = configuration_file();
  out.configuration = std::move(options);
  add_warnings(out);
  return out;
}

}  // namespace holdfast::info
