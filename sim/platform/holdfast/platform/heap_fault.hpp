// Named allocation sites that a fault plan may fail (point "heap", the site's name as the kind). Clause H1.
#pragma once

#include <holdfast/platform/abi.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

bool heap_fault(const char* site) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::platform
