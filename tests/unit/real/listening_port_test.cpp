// Proves that a port is closed to newcomers without closing anybody's socket: those that were let in are not heard any more,
// what they said before is still there, those that wait are counted, and nobody gets in; other ports are as they were.
#include <holdfast/platform/listening_port.hpp>

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace holdfast::testing {

namespace {

class socket_end {
 public:
  explicit socket_end(int descriptor) : descriptor_(descriptor) {}
  socket_end(socket_end&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  socket_end& operator=(socket_end&&) = delete;
  ~socket_end() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int number() const { return descriptor_; }
  bool readable(int within_ms) const {
    pollfd one{descriptor_, POLLIN, 0};
    return ::poll(&one, 1, within_ms) == 1;
  }

 private:
  int descriptor_;
};

struct open_port {
  explicit open_port(int family = AF_INET) : listener(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    socklen_t bytes = sizeof(sockaddr_in);
    if (family == AF_INET6) {
      auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
      v6.sin6_family = AF_INET6;
      v6.sin6_addr = in6addr_loopback;
      bytes = sizeof(sockaddr_in6);
    } else {
      auto& v4 = reinterpret_cast<sockaddr_in&>(address);
      v4.sin_family = AF_INET;
      v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    usable = ::bind(listener.number(), reinterpret_cast<sockaddr*>(&address), bytes) == 0 &&
             ::listen(listener.number(), 8) == 0 &&
             ::getsockname(listener.number(), reinterpret_cast<sockaddr*>(&address), &bytes) == 0;
    address_bytes = bytes;
  }
  /// A client whose attempt may be under way still.
  socket_end knock() const {
    socket_end client(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    static_cast<void>(::connect(client.number(), reinterpret_cast<const sockaddr*>(&address), address_bytes));
    return client;
  }
  socket_end let_in() {
    EXPECT_TRUE(listener.readable(5'000));
    return socket_end(::accept(listener.number(), nullptr, nullptr));
  }

  sockaddr_storage address{};
  socklen_t address_bytes = 0;
  socket_end listener;
  bool usable = false;
};

bool say(const socket_end& one) { return ::send(one.number(), "x", 1, MSG_NOSIGNAL) == 1; }

std::size_t hear(const socket_end& one) {
  char some[8];
  const ssize_t got = ::recv(one.number(), some, sizeof(some), MSG_DONTWAIT);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

}  // namespace

TEST(listening_port, without_anybody_there_is_nobody_to_wait_for) {
  open_port port;
  ASSERT_TRUE(port.usable);
  EXPECT_EQ(platform::shut_out_newcomers(port.address), 0u);
}

TEST(listening_port, who_was_let_in_is_not_heard_any_more_and_is_not_told) {
  open_port port;
  ASSERT_TRUE(port.usable);
  const socket_end client = port.knock();
  const socket_end inside = port.let_in();
  EXPECT_EQ(platform::shut_out_newcomers(port.address), 0u);
  ASSERT_TRUE(say(client));
  // Loopback delivers within the call of `send`: what is not there now was dropped.
  EXPECT_FALSE(inside.readable(0));
  EXPECT_EQ(platform::shut_out_newcomers(port.address), 0u);
}

TEST(listening_port, what_was_said_before_counts_until_it_is_read) {
  open_port port;
  ASSERT_TRUE(port.usable);
  const socket_end client = port.knock();
  const socket_end inside = port.let_in();
  ASSERT_TRUE(say(client));
  ASSERT_TRUE(inside.readable(5'000));
  EXPECT_EQ(platform::shut_out_newcomers(port.address), 1u);
  ASSERT_TRUE(say(client));
  EXPECT_EQ(platform::shut_out_newcomers(port.address), 1u);
  EXPECT_EQ(hear(inside), 1u) << "what came before, and nothing of what came after";
  EXPECT_EQ(platform::shut_out_newcomers(port.address), 0u);
}

TEST(listening_port, who_waits_to_be_let_in_counts) {
  open_port port;
  ASSERT_TRUE(port.usable);
  const socket_end client = port.knock();
  ASSERT_TRUE(port.listener.readable(5'000));
  EXPECT_EQ(platform::shut_out_newcomers(port.address), 1u);
  const socket_end inside = port.let_in();
  EXPECT_EQ(platform::shut_out_newcomers(port.address), 0u);
  ASSERT_TRUE(say(client));
  EXPECT_FALSE(inside.readable(0));
}

TEST(listening_port, nobody_gets_in_any_more_and_those_who_try_find_nobody_once_it_is_closed) {
  open_port port;
  ASSERT_TRUE(port.usable);
  EXPECT_EQ(platform::shut_out_newcomers(port.address), 0u);
  const socket_end late = port.knock();
  // Loopback answers within the call of `connect`: what is not there now was dropped.
  EXPECT_FALSE(port.listener.readable(0));
  EXPECT_EQ(platform::shut_out_newcomers(port.address), 0u);
  int status = -1;
  socklen_t bytes = sizeof(status);
  ASSERT_EQ(::getsockopt(late.number(), SOL_SOCKET, SO_ERROR, &status, &bytes), 0);
  EXPECT_EQ(status, 0) << "it was neither let in nor turned away";
}

TEST(listening_port, other_ports_of_the_process_are_as_they_were) {
  open_port port, other;
  ASSERT_TRUE(port.usable && other.usable);
  const socket_end client = other.knock();
  const socket_end inside = other.let_in();
  EXPECT_EQ(platform::shut_out_newcomers(port.address), 0u);
  ASSERT_TRUE(say(client));
  ASSERT_TRUE(inside.readable(5'000));
  EXPECT_EQ(hear(inside), 1u);
  const socket_end next = other.knock();
  EXPECT_TRUE(other.listener.readable(5'000));
}

TEST(listening_port, addresses_of_the_sixth_version_are_understood) {
  open_port port(AF_INET6);
  if (!port.usable) GTEST_SKIP() << "this machine has no ::1";
  const socket_end client = port.knock();
  const socket_end inside = port.let_in();
  EXPECT_EQ(platform::shut_out_newcomers(port.address), 0u);
  ASSERT_TRUE(say(client));
  EXPECT_FALSE(inside.readable(0));
}

TEST(listening_port, no_address_is_nobodys_port) { EXPECT_EQ(platform::shut_out_newcomers(sockaddr_storage{}), 0u); }

}  // namespace holdfast::testing
