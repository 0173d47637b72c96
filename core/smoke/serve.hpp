// The other process: serves memory until its standard input ends.
#pragma once

#include <holdfast/platform/abi.hpp>

#include "smoke/options.hpp"

namespace holdfast::smoke {

/// main of a peer. 0: it ended with nothing left; 1 otherwise.
int serve(const options& what);

}  // namespace holdfast::smoke
