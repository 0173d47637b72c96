#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/ucx/inspect.hpp>

#include <holdfast/backends/ucx/load.hpp>

namespace holdfast::inline HOLDFAST_ABI::ucx {

namespace {

std::unexpected<error> failed(const ucp_table& table, const char* operation, ucs_status_t status) {
  const char* const words = table.ucs_status_string != nullptr ? table.ucs_status_string(status) : "";
  return fail_with_words(error_code::backend, operation, words, 0, static_cast<std::uint64_t>(status));
}

}  // namespace

result<findings> inspect(event_log& log, const char* library, const std::string& transports,
                         const std::string& devices) {
  const result<ucp_table> loaded = load_ucp(log, library);
  if (!loaded) return std::unexpected(loaded.error());
  const ucp_table& table = *loaded;
  findings out;
  unsigned major = 0, minor = 0, release = 0;
  table.ucp_get_version(&major, &minor, &release);
  out.version = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
  out.compiled_for = std::to_string(UCP_API_MAJOR) + "." + std::to_string(UCP_API_MINOR);

  if (const auto there = require_devices(table, transports, devices); !there) return std::unexpected(there.error());
  ucp_config_t* config = nullptr;
  ucs_status_t status = table.ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return failed(table, "ucx.config", status);
  status = table.ucp_config_modify(config, "RCACHE_ENABLE", "n");
  if (status == UCS_OK && transports != "auto") status = table.ucp_config_modify(config, "TLS", transports.c_str());
  if (status == UCS_OK) status = choose_devices(table, log, config, devices);
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
  out.lanes = lanes_of(table, context);
  table.ucp_cleanup(context);
  return out;
}

}  // namespace holdfast::inline HOLDFAST_ABI::ucx
