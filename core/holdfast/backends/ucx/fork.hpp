// What keeps a fork of the process from taking registered memory away from under a device.
//
// Why this exists: after a fork the parent that writes to a page gets a copy, and the device goes on with the other one,
// unless the kernel copies for the child at once or libibverbs marked every registered page. Marking has to be asked for
// before the first registration of the process (spec/transport 7.21). Where our own progress moves the bytes, over tcp
// and shared memory, nothing needs it.
//
// Threading   At start, where nobody registers memory.
// Failure     absent, with the setting that decides it.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/platform/process.hpp>

#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::ucx {

/// `policy`: refuse, warn or off. `device_lanes`: whether a device may read and write memory by itself.
result<platform::fork_guard> protect_from_fork(std::string_view policy, bool device_lanes) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::ucx
