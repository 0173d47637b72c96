#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/listening_port.hpp>

#include <dirent.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <time.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace holdfast::inline HOLDFAST_ABI::platform {

namespace {

constexpr long pause_ns = 200'000;

// Of a numeric address: its port, and its bytes; zeros in the bytes mean every address of the machine.
struct place {
  in_port_t port = 0;
  unsigned char bytes[16] = {};
  bool anywhere() const noexcept {
    static constexpr unsigned char zeros[16] = {};
    return std::memcmp(bytes, zeros, sizeof(bytes)) == 0;
  }
};

bool place_of(const sockaddr_storage& address, place& out) noexcept {
  out = {};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    out.port = v4.sin_port;
    // As a socket of both families shows it.
    if (v4.sin_addr.s_addr != 0) out.bytes[10] = out.bytes[11] = 0xff;
    std::memcpy(out.bytes + 12, &v4.sin_addr.s_addr, 4);
    return true;
  }
  if (address.ss_family != AF_INET6) return false;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  out.port = v6.sin6_port;
  std::memcpy(out.bytes, &v6.sin6_addr, sizeof(out.bytes));
  return true;
}

template <class T>
bool option(int descriptor, int level, int name, T& out) noexcept {
  socklen_t bytes = sizeof(out);
  return ::getsockopt(descriptor, level, name, &out, &bytes) == 0;
}

// What comes from now on is dropped before the socket sees it. What it has is still there to be read.
void hear_nothing(int descriptor) noexcept {
  sock_filter drop_all = {BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program = {1, &drop_all};
  static_cast<void>(::setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
}

enum class whom : std::uint8_t { listener, everybody };

std::size_t look_at(int descriptor, const place& listening, whom shut_out) noexcept {
  sockaddr_storage local{};
  socklen_t bytes = sizeof(local);
  int kind = 0, accepts = 0;
  place here;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &bytes) != 0 || !place_of(local, here) ||
      here.port != listening.port || !option(descriptor, SOL_SOCKET, SO_TYPE, kind) || kind != SOCK_STREAM ||
      !option(descriptor, SOL_SOCKET, SO_ACCEPTCONN, accepts))
    return 0;
  const bool same = std::memcmp(here.bytes, listening.bytes, sizeof(here.bytes)) == 0;
  if (accepts != 0) {
    if (!same) return 0;
    hear_nothing(descriptor);
    tcp_info state{};
    return option(descriptor, IPPROTO_TCP, TCP_INFO, state) ? state.tcpi_unacked : 0;
  }
  if (shut_out == whom::listener || (!same && !listening.anywhere())) return 0;
  hear_nothing(descriptor);
  int unread = 0;
  return ::ioctl(descriptor, FIONREAD, &unread) == 0 && unread > 0 ? 1 : 0;
}

std::size_t look(const place& listening, whom shut_out) noexcept {
  DIR* const descriptors = ::opendir("/proc/self/fd");
  if (descriptors == nullptr) return 0;
  std::size_t left = 0;
  while (const dirent* const one = ::readdir(descriptors))
    if (one->d_name[0] >= '0' && one->d_name[0] <= '9') left += look_at(std::atoi(one->d_name), listening, shut_out);
  ::closedir(descriptors);
  return left;
}

}  // namespace

void let_nobody_in(const sockaddr_storage& address) noexcept {
  place listening;
  if (place_of(address, listening) && listening.port != 0) static_cast<void>(look(listening, whom::listener));
}

std::size_t shut_out_newcomers(const sockaddr_storage& address) noexcept {
  place listening;
  if (!place_of(address, listening) || listening.port == 0) return 0;
  const std::size_t left = look(listening, whom::everybody);
  const timespec pause = {0, pause_ns};
  ::nanosleep(&pause, nullptr);
  // A socket that is just being accepted waits no more and has no number yet: the second look finds it.
  return left != 0 ? left : look(listening, whom::everybody);
}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
