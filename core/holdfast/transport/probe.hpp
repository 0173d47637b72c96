// Whether GETs work here: found by doing some, never inferred from a variable.
//
// Why this exists: what a library can do depends on version, transports, devices and environment. A connection of
// the process with itself moves 64 B, 8 KiB and 1 MiB, and every byte is compared (spec/transport 7.1, step 6).
//
// Ownership   Pages, registrations and connection of the probe are given back. What does not end in time is given back
//             when it does: a GET that is still posted keeps its pages registered, since the bytes may come.
// Threading   Blocks the calling thread; both threads of the transport run.
// Failure     GET counts as absent; the reason is in the answer.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/transport/engine.hpp>

#include <optional>

namespace holdfast::inline HOLDFAST_ABI::transport {

/// `shares_memory`: none, if no memory is to be shared; else becomes what GETs over a data endpoint came to, which is
/// offered to peers from here on if they worked.
result<void> probe_gets(engine& of, std::optional<result<void>>& shares_memory, platform::time_point deadline) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::transport
