// A broken lifetime invariant ends the run as a violation of its own kind. Clause B1.
#pragma once

#include <holdfast/platform/abi.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

[[noreturn]] void stop_process(const char* what) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::platform
