// Standard output of a program that loads libraries which print there.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstdio>

namespace holdfast::tool {

/// Standard output as it was; what libraries print there goes to standard error from now on, or it would stand in the
/// middle of a document.
std::FILE* take_standard_output();

}  // namespace holdfast::tool
