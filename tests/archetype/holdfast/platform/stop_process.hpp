// Archetype of B1.
#pragma once

#include <holdfast/platform/abi.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

[[noreturn]] void stop_process(const char* what) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::platform
