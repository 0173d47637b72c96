// The runtime's device over UCX: a transport with its connections, and pinned memory's backend over it.
//
// Why this exists: the one place that joins loading the library, opening its context, the transport, and the backend.
//
// Ownership   The factory keeps its options.
// Threading   As runtime/device.hpp says. Making one changes the process's environment (backends/ucx/load.hpp).
// Failure     absent (no library, no usable transport), backend, invalid_argument (a setting), out_of_memory.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/ucx/load.hpp>
#include <holdfast/backends/ucx/wire_ucx.hpp>
#include <holdfast/runtime/device.hpp>
#include <holdfast/transport/loss_watch.hpp>
#include <holdfast/transport/settings.hpp>

#include <string>

namespace holdfast::inline HOLDFAST_ABI {

struct ucx_device_options {
  /// `incarnation` is the runtime's and is filled in.
  transport::settings transport;
  ucx::wire_settings wire;
  /// Told of every peer that is lost, see transport/loss_watch.hpp.
  transport::loss_handler lost;
  /// File name for the loader.
  std::string library = ucx::default_library;
};

device_factory ucx_device(ucx_device_options options);

}  // namespace holdfast::inline HOLDFAST_ABI
