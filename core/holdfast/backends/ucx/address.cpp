#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/ucx/address.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>

namespace holdfast::inline HOLDFAST_ABI::ucx {

std::optional<socket_address> parse_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size()) return std::nullopt;
  const std::string_view port_text = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, failed] = std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (failed != std::errc{} || end != port_text.data() + port_text.size()) return std::nullopt;

  socket_address made;
  std::string host(text.substr(0, colon));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    if (inet_pton(AF_INET6, host.c_str(), &address.sin6_addr) != 1) return std::nullopt;
    std::memcpy(&made.storage, &address, sizeof(address));
    made.bytes = sizeof(address);
    return made;
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return std::nullopt;
  std::memcpy(&made.storage, &address, sizeof(address));
  made.bytes = sizeof(address);
  return made;
}

std::string format_address(const sockaddr_storage& address) {
  char host[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof(v4));
    if (inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host)) == nullptr) return "?";
    return std::string(host) + ":" + std::to_string(ntohs(v4.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof(v6));
    if (inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host)) == nullptr) return "?";
    return "[" + std::string(host) + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  return "?";
}

}  // namespace holdfast::inline HOLDFAST_ABI::ucx
