// Proves that a forked child leaves its parent's transport and runtime alone: their destructors do nothing there, return
// at once, and the parent goes on.
#include <holdfast/platform/abi.hpp>

#include "tests/ucx/harness.hpp"

#include <holdfast/runtime/runtime.hpp>
#include <holdfast/runtime/ucx_device.hpp>

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::testing {
namespace {

// What the child makes of `body`: 0 if it returned true within five seconds.
template <class Body>
int in_a_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(5);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(ucx_fork, a_childs_destructor_of_a_transport_does_nothing_and_the_parent_goes_on) {
  peer_process peer({.bytes = 65536, .seed = 3});
  side own;
  ASSERT_FALSE(own.failure()) << own.failure()->text();
  ASSERT_TRUE(own.net().async_connect(peer.address, peer.identity, holdfast::block));
  const std::size_t hung_before = own.events(event_id::teardown_hung).size();
  EXPECT_EQ(in_a_child([&] {
              own.drop_transport();
              return own.events(event_id::teardown_hung).size() == hung_before;
            }),
            0);
  registered into(own, 65536);
  waited_get get(own, peer.identity, peer.memory, 0, into, 65536);
  ASSERT_TRUE(get.submitted());
  const auto end = get.wait(10s);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->outcome, tp::transfer_outcome::ok) << end->why.text();
  EXPECT_TRUE(own.teardown(5s).proof.has_value());
}

TEST(ucx_fork, a_childs_destructor_of_a_runtime_does_nothing_and_the_parents_shutdown_is_clean) {
  platform::host host{1};
  auto made = runtime::create(host, {}, ucx_device({}));
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(in_a_child([&] {
              runtime gone(std::move(*made));
              return gone.incarnation() != 0;
            }),
            0);
  const auto report = made->async_shutdown(host.clock().now() + 5s, holdfast::block);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_TRUE(report->clean()) << report->to_json();
}

}  // namespace
}  // namespace holdfast::testing
