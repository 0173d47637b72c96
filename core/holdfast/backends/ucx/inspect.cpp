#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/ucx/inspect.hpp>

#include <holdfast/backends/ucx/load.hpp>
#include <holdfast/platform/driver_library.hpp>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::ucx {

namespace {

std::unexpected<error> failed(const ucp_table& table, const char* operation, ucs_status_t status) {
  const char* const words = table.ucs_status_string != nullptr ? table.ucs_status_string(status) : "";
  return fail_with_words(error_code::backend, operation, words, 0, static_cast<std::uint64_t>(status));
}

// UCX tells its resources only as text: "#      resource 1  :  md 1  dev 1  flags -- tcp/lo".
std::vector<findings::lane> lanes_in(std::string_view text) {
  std::vector<findings::lane> out;
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

std::vector<findings::lane> lanes_of(ucp_context_h context, const char* library) {
  const auto opened = platform::driver_library::open(library, {});
  if (!opened) return {};
  const auto print = reinterpret_cast<decltype(&ucp_context_print_info)>(opened->symbol("ucp_context_print_info"));
  if (print == nullptr) return {};
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const out = ::open_memstream(&text, &bytes);
  if (out == nullptr) return {};
  print(context, out);
  std::fclose(out);
  std::vector<findings::lane> lanes = lanes_in({text, bytes});
  std::free(text);
  return lanes;
}

}  // namespace

result<findings> inspect(event_log& log, const char* library, const std::string& transports) {
  const result<ucp_table> loaded = load_ucp(log, library);
  if (!loaded) return std::unexpected(loaded.error());
  const ucp_table& table = *loaded;
  findings out;
  unsigned major = 0, minor = 0, release = 0;
  table.ucp_get_version(&major, &minor, &release);
  out.version = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
  out.compiled_for = std::to_string(UCP_API_MAJOR) + "." + std::to_string(UCP_API_MINOR);

  ucp_config_t* config = nullptr;
  ucs_status_t status = table.ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return failed(table, "ucx.config", status);
  status = table.ucp_config_modify(config, "RCACHE_ENABLE", "n");
  if (status == UCS_OK && transports != "auto") status = table.ucp_config_modify(config, "TLS", transports.c_str());
  ucp_context_h context = nullptr;
  if (status == UCS_OK) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    params.mt_workers_shared = 1;
    status = table.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context);
  }
  table.ucp_config_release(config);
  if (status != UCS_OK) return failed(table, "ucx.context", status);
  out.lanes = lanes_of(context, library);
  table.ucp_cleanup(context);
  return out;
}

}  // namespace holdfast::inline HOLDFAST_ABI::ucx
