// Named allocation sites that a test may fail. On the real side none ever fails on purpose. Clause H1.
#pragma once

#include <holdfast/platform/abi.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

/// True: behave as if the allocation at `site` (a string literal) had failed.
constexpr bool heap_fault(const char* /*site*/) noexcept { return false; }

}  // namespace holdfast::inline HOLDFAST_ABI::platform
