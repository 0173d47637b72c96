// What UCX is there, and what it could use: for a person who asks why it is not used.
//
// Why this exists: a transport says whether it works; somebody in front of a machine wants to know what was found.
//
// Ownership   Values; the library is never unloaded.
// Threading   As load.hpp: changes the process's environment.
// Failure     `absent` and `backend` as load_ucp and a context's opening say.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/ucx/devices.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <string>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::ucx {

struct findings {
  /// "1.13.1", as the library says.
  std::string version;
  /// "1.13", of the header that this was compiled with.
  std::string compiled_for;
  /// In UCX's order; empty also where the library does not say.
  std::vector<lane> lanes;
};

/// Opens a context with the given transports and devices, asks it, and closes it. `library`, `transports`, `devices`: as
/// load.hpp and wire_ucx.hpp.
result<findings> inspect(event_log& log, const char* library, const std::string& transports,
                         const std::string& devices = std::string(all_devices));

}  // namespace holdfast::inline HOLDFAST_ABI::ucx
