// Random troubles over each kind of lane, a few seconds of each; `--soak` is the long form of the same.
#include <holdfast/platform/abi.hpp>

#include <tests/processes/program.hpp>
#include <tests/processes/sequence.hpp>

#include <gtest/gtest.h>

namespace holdfast::testing::processes {
namespace {

using namespace std::chrono_literals;

void expect_well(sequence what) {
  what.shape.seed = first_seed();
  const sequence_result found = run_sequence(what);
  for (const std::string& sentence : found.failures) ADD_FAILURE() << "seed " << what.shape.seed << ": " << sentence;
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(what.shape.seed), found.text().c_str());
  EXPECT_TRUE(found.counts.contains("fetched")) << "nobody fetched anything";
}

TEST(processes_sequence, kills_stops_and_restarts_through_shared_memory) {
  sequence what;
  what.shape.memory = true;
  what.troubles = 4s;
  expect_well(what);
}

TEST(processes_sequence, kills_stops_and_restarts_over_tcp) {
  sequence what;
  what.shape.memory = false;
  what.troubles = 4s;
  expect_well(what);
}

TEST(processes_sequence, kills_stops_restarts_and_cut_links) {
  auto links = network::make(3);
  if (!links) GTEST_SKIP() << links.error();
  sequence what;
  what.shape.memory = false;
  what.shape.links = links->get();
  what.shape.bound += 20s;  // a connection into a cut link may be found dead by keepalive alone
  what.troubles = 4s;
  expect_well(what);
}

}  // namespace
}  // namespace holdfast::testing::processes
