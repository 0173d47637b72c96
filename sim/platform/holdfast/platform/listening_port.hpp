// The simulated process has no sockets: see the real header. What a library makes of late newcomers is its double's business.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <sys/socket.h>

#include <cstddef>

namespace holdfast::inline HOLDFAST_ABI::platform {

inline void let_nobody_in(const sockaddr_storage&) noexcept {}
inline std::size_t shut_out_newcomers(const sockaddr_storage&) noexcept { return 0; }

}  // namespace holdfast::inline HOLDFAST_ABI::platform
