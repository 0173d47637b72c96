// The settings structs, filled from a configuration.
//
// Why this exists: options are declared in a table that knows no struct, and structs are validated without a file; this
// is where one becomes the other.
//
// Ownership   Values. Units: as the structs say. Threading: pure functions.
// Failure     None: a configuration holds values that are inside their ranges. Texts need memory: std::bad_alloc.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/options/configuration.hpp>
#include <holdfast/runtime/runtime.hpp>
#include <holdfast/runtime/ucx_device.hpp>

namespace holdfast::inline HOLDFAST_ABI {

runtime_options configured_runtime(const options::configuration& from);
/// Of the transport, `incarnation` and `epoch` are the runtime's.
ucx_device_options configured_ucx(const options::configuration& from);

}  // namespace holdfast::inline HOLDFAST_ABI
