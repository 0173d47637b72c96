// Proves that a transport ends while others connect to it: the library follows a socket that was just accepted to its
// listener, and dies of it if that listener is gone (docs/life-of-a-connection.md). Without `shut_out_newcomers` most runs of
// this test end in the library.
#include <tests/ucx/harness.hpp>

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace holdfast::testing {

TEST(ucx_ending_listener, a_transport_comes_and_goes_under_processes_that_never_stop_connecting) {
  tp::settings values;
  values.probe_bytes_max = 0;  // many are made: without GETs of their own
  {
    side first(values);
    ASSERT_FALSE(first.failure()) << first.failure()->text();
    values.listen_address = first.net().listen_address();
  }
  std::deque<peer_process> clients;
  for (int i = 0; i < 2; ++i)
    clients.emplace_back(peer_process::options{.bytes = 4096, .connect_to = values.listen_address, .again = true});
  unsigned lives = 0, met = 0;
  for (int life = 0; life < 60; ++life) {
    side own(values);
    // The port may still be the last life's for a moment.
    if (own.failure()) continue;
    ++lives;
    if (own.wait_for(event_id::hello_accepted, 1, 100ms)) ++met;
    const auto ended = own.teardown(5s);
    EXPECT_TRUE(ended.proof.has_value());
  }
  EXPECT_GT(lives, 10u);
  EXPECT_GT(met, 10u);
  for (peer_process& each : clients) EXPECT_EQ(each.finish(), 0);
}

}  // namespace holdfast::testing
