// Which network devices UCX may use: by name, each of which has to be there.
//
// Why this exists: UCX takes a name that it does not know with a warning on standard error, and goes on with the others;
// an operator who named a network card expects it to be used, or to be told that it is not there.
//
// Ownership   Values; a context that is opened to look is closed again.
// Threading   As load.hpp.
// Failure     absent, with the setting, the name that is wrong, and as many of the names that there are as fit.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/ucx/ucp_table.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::ucx {

/// The word for all of them.
inline constexpr std::string_view all_devices = "all";

/// What a context can use.
struct lane {
  std::string transport;  // "tcp"
  std::string device;     // "eth0", "mlx5_0:1"
};

/// In UCX's order; empty also where the library does not say.
std::vector<lane> lanes_of(const ucp_table& table, ucp_context_h context);

/// Puts the choice of devices into a configuration. Nothing is changed where that is what UCX does by itself. A variable
/// of the operator's that says otherwise is told by event.
ucs_status_t choose_devices(const ucp_table& table, event_log& log, ucp_config_t* config, const std::string& devices);

/// Whether each device named can be used with these transports, both in UCX's own words. Opens a context and closes it,
/// unless all devices may be used.
result<void> require_devices(const ucp_table& table, const std::string& transports, const std::string& devices);

/// Whether a context uses the devices named and no others of the network.
bool uses_devices(const ucp_table& table, ucp_context_h context, std::string_view devices);

}  // namespace holdfast::inline HOLDFAST_ABI::ucx
