// Archetype of leaving a port: only a host can supply it.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <sys/socket.h>

#include <cstddef>

namespace holdfast::inline HOLDFAST_ABI::platform {

void let_nobody_in(const sockaddr_storage& address) noexcept;
std::size_t shut_out_newcomers(const sockaddr_storage& address) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::platform
