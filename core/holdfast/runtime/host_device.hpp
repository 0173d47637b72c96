// The runtime's device on a machine without one: registration in the kernel, no peers.
//
// Why this exists: see backends/host/host_backend.hpp.
//
// Ownership   The factory keeps nothing.
// Threading   As runtime/device.hpp says.
// Failure     As runtime/device.hpp says.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/host/memory_calls.hpp>
#include <holdfast/runtime/device.hpp>

namespace holdfast::inline HOLDFAST_ABI {

device_factory host_device(const memory_calls& calls = system_memory_calls());

}  // namespace holdfast::inline HOLDFAST_ABI
