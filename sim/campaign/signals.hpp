// Ctrl-C, heard once as a request and twice as an order.
//
// Threading   One thread; handlers are installed once by the program. Failure: none.
#pragma once

#include <sys/types.h>

namespace holdfast::sim {

/// From here on the first SIGINT or SIGTERM sets `stop_requested`, the second ends the process at once; children die
/// with it.
void listen_to_signals();
bool stop_requested() noexcept;

}  // namespace holdfast::sim
