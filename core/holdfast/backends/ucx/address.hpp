// Socket addresses as text and back: numeric only, so that nothing here asks a name server.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::ucx {

struct socket_address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
};

/// "127.0.0.1:7000" or "[::1]:7000". None: it is not one.
std::optional<socket_address> parse_address(std::string_view text);
/// The inverse; "?" for a family that is neither.
std::string format_address(const sockaddr_storage& address);

}  // namespace holdfast::inline HOLDFAST_ABI::ucx
