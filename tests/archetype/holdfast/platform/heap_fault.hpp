// Archetype of H1: not a constant, so nothing may be decided at compile time by it.
#pragma once

#include <holdfast/platform/abi.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

bool heap_fault(const char* site) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::platform
