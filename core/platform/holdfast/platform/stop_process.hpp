// What happens when a lifetime invariant is broken. Clause B1.
#pragma once

#include <holdfast/platform/abi.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

/// Prints `what` to standard error and aborts. Called after memory safety broke: runs nothing else of ours.
[[noreturn]] void stop_process(const char* what) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::platform
