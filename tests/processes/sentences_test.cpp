// What a node is told when one of three processes is killed, stands still, comes back under its address, or can no longer
// be reached: sentence by sentence, over each kind of lane.
#include <holdfast/platform/abi.hpp>

#include <tests/processes/fleet.hpp>
#include <tests/processes/program.hpp>

#include <gtest/gtest.h>

#include <string>

namespace holdfast::testing::processes {
namespace {

using namespace std::chrono_literals;

fleet::shape through_memory() { return {.memory = true, .seed = first_seed()}; }
fleet::shape over_tcp() { return {.memory = false, .seed = first_seed()}; }

// A fleet whose failures are the test's.
struct watched : fleet {
  explicit watched(const shape& how) : fleet(how) { start_all(); }
  ~watched() {
    for (const std::string& sentence : failures()) ADD_FAILURE() << sentence;
  }
  bool all_run() const {
    return state(0) == condition::running && state(1) == condition::running && state(2) == condition::running;
  }
  /// Fetches until it is connected; what the fetch ended with.
  std::string fetch(unsigned by, unsigned from, std::uint64_t bytes = 300'000) {
    const auto until = steady::now() + how().bound;
    for (;;) {
      const std::string told = begin_and_wait(by, from, bytes);
      if ((told != "unreachable" && told != "stale_key") || steady::now() > until) return told;
      listen(10ms);
    }
  }
  void begin(unsigned by, unsigned from, std::uint64_t bytes = 300'000) {
    tell(by, "fetch " + std::to_string(from) + ' ' + std::to_string(bytes));
  }
  std::string begin_and_wait(unsigned by, unsigned from, std::uint64_t bytes) {
    begin(by, from, bytes);
    return answer(by, "fetched", how().bound).value_or("nothing");
  }
  /// Ends everybody who runs; their last words.
  std::map<std::string, std::uint64_t> end(unsigned node, bool quietly) {
    ask_to_end(node, quietly);
    const auto words = wait_for_end(node);
    return words ? numbers_of(*words) : std::map<std::string, std::uint64_t>();
  }
  /// UCX ended a process that did nothing wrong: what that one would have said is not known.
  bool fell() const { return !fallen().empty(); }
  void end_all() {
    for (unsigned i = 0; i < size(); ++i)
      if (state(i) == condition::running) {
        EXPECT_TRUE(!end(i, true).empty() || fell()) << "node " << i;
      }
  }
};

TEST(processes_through_shared_memory, a_waiter_is_told_once_the_control_connection_reports_that_its_peer_was_killed) {
  watched nodes(through_memory());
  ASSERT_TRUE(nodes.all_run());
  ASSERT_EQ(nodes.fetch(0, 1), "ok");
  nodes.stop(1);
  nodes.begin(0, 1);
  ASSERT_TRUE(nodes.wait_for(0, "posted", 1, nodes.how().bound));
  EXPECT_FALSE(nodes.answer(0, "fetched", 500ms)) << "a peer that stands still answered";
  nodes.kill(1);
  EXPECT_EQ(nodes.answer(0, "fetched", nodes.how().bound), "indeterminate");
  auto seen = nodes.numbers(0);
  EXPECT_EQ(seen["orphaned"], 1u);
  EXPECT_EQ(seen["holds"], 1u);
  EXPECT_EQ(seen["transfers"], 1u);
  EXPECT_GT(seen["quarantined_bytes"], 300'000u);
  // Nobody else is touched, and the next life under the same address is another one.
  EXPECT_EQ(nodes.fetch(0, 2), "ok");
  EXPECT_EQ(nodes.fetch(2, 0), "ok");
  ASSERT_TRUE(nodes.start(1));
  EXPECT_EQ(nodes.fetch(0, 1), "ok");
  EXPECT_EQ(nodes.fetch(1, 0), "ok");
  EXPECT_FALSE(nodes.answer(0, "fetched", 100ms)) << "the waiter was told twice";
  auto words = nodes.end(0, true);
  if (words.empty() && nodes.fell()) GTEST_SKIP() << "the library fell at the end, as told above";
  EXPECT_EQ(words["transfers"], 1u);
  EXPECT_EQ(words["not_submitted"], 1u);
  EXPECT_EQ(words["swept"], 1u);
  EXPECT_EQ(words["registered"], 0u);
  nodes.end_all();
}

TEST(processes_through_shared_memory, a_get_from_a_peer_that_stands_still_is_pending_held_and_counted_and_goes_on) {
  watched nodes(through_memory());
  ASSERT_TRUE(nodes.all_run());
  ASSERT_EQ(nodes.fetch(0, 1), "ok");
  nodes.stop(1);
  nodes.begin(0, 1);
  ASSERT_TRUE(nodes.wait_for(0, "posted", 1, nodes.how().bound));
  EXPECT_FALSE(nodes.answer(0, "fetched", 1s)) << "a peer that stands still answered";
  auto seen = nodes.numbers(0);
  EXPECT_EQ(seen["posted"], 1u);
  EXPECT_EQ(seen["holds"], 1u);
  EXPECT_EQ(seen["transfers"], 1u);
  EXPECT_EQ(seen["orphaned"], 0u) << "silence is not death";
  nodes.begin(0, 2);
  EXPECT_EQ(nodes.answer(0, "fetched", nodes.how().bound), "ok") << "the third has no part in it";
  nodes.resume(1);
  EXPECT_EQ(nodes.answer(0, "fetched", nodes.how().bound), "ok");
  EXPECT_TRUE(nodes.wait_for(0, "transfers", 0, nodes.how().bound));
  nodes.end_all();
}

TEST(processes_over_tcp, a_killed_peer_fails_its_gets_and_the_memory_comes_back) {
  watched nodes(over_tcp());
  ASSERT_TRUE(nodes.all_run());
  ASSERT_EQ(nodes.fetch(0, 1), "ok");
  nodes.stop(1);
  nodes.begin(0, 1);
  ASSERT_TRUE(nodes.wait_for(0, "posted", 1, nodes.how().bound));
  nodes.kill(1);
  const std::string told = nodes.answer(0, "fetched", nodes.how().bound).value_or("nothing");
  EXPECT_TRUE(told == "peer_lost" || told == "transfer_failed") << told;
  auto seen = nodes.numbers(0);
  EXPECT_EQ(seen["holds"], 0u);
  EXPECT_EQ(seen["transfers"], 0u);
  EXPECT_EQ(seen["quarantined"], 0u);
  ASSERT_TRUE(nodes.start(1));
  EXPECT_EQ(nodes.fetch(0, 1), "ok");
  nodes.end_all();
}

TEST(processes, a_shutdown_with_a_get_at_a_peer_that_stands_still_returns_by_its_deadline_and_ends_cleanly) {
  for (const bool memory : {false, true}) {
    watched nodes(memory ? through_memory() : over_tcp());
    ASSERT_TRUE(nodes.all_run());
    ASSERT_EQ(nodes.fetch(0, 1), "ok");
    nodes.stop(1);
    nodes.begin(0, 1);
    ASSERT_TRUE(nodes.wait_for(0, "posted", 1, nodes.how().bound));
    // Exit status and deadline are looked at by node and fleet: the library would abort the process here.
    auto words = nodes.end(0, false);
    if (words.empty() && nodes.fell()) GTEST_SKIP() << "the library fell at the end, as told above";
    ASSERT_FALSE(words.empty());
    EXPECT_EQ(words["transfers"], 1u);
    EXPECT_EQ(words["not_submitted"], 1u);
    EXPECT_EQ(words["registered"], 0u);
    // Over tcp the one that stood still may fall by the library when it goes on: the fleet knows.
    nodes.resume(1);
    nodes.listen(300ms);
    if (nodes.state(1) != fleet::condition::absent) {
      const std::string told = nodes.fetch(2, 1);
      EXPECT_TRUE(told == "ok" || nodes.state(1) == fleet::condition::absent) << told;
    }
    nodes.end_all();
  }
}

TEST(processes, a_peer_may_come_back_under_its_address_again_and_again_and_is_another_each_time) {
  for (const bool memory : {false, true}) {
    watched nodes(memory ? through_memory() : over_tcp());
    ASSERT_TRUE(nodes.all_run());
    for (int life = 0; life < 3; ++life) {
      ASSERT_EQ(nodes.fetch(0, 1), "ok") << life;
      ASSERT_EQ(nodes.fetch(1, 2), "ok") << life;
      const peer_id before = nodes.offered(1).who;
      nodes.kill(1);
      ASSERT_TRUE(nodes.start(1));
      EXPECT_EQ(nodes.offered(1).who.worker_id, before.worker_id);
      EXPECT_NE(nodes.offered(1).who.incarnation, before.incarnation);
    }
    EXPECT_EQ(nodes.fetch(2, 1), "ok");
    nodes.end_all();
  }
}

struct cut_off {
  std::unique_ptr<network> links;
  std::unique_ptr<watched> nodes;
  std::string open() {
    auto made = network::make(3);
    if (!made) return made.error();
    links = std::move(*made);
    fleet::shape how = over_tcp();
    how.links = links.get();
    // What sends nothing learns of the other side's end by keepalive alone.
    how.bound += 20s;
    nodes = std::make_unique<watched>(how);
    return {};
  }
  // The nodes before the links.
  ~cut_off() { nodes.reset(); }
};

TEST(processes_with_cut_links, a_get_waits_while_its_link_is_cut_and_ends_when_it_is_healed) {
  cut_off here;
  if (const std::string why = here.open(); !why.empty()) GTEST_SKIP() << why;
  watched& nodes = *here.nodes;
  ASSERT_TRUE(nodes.all_run());
  for (const bool answers_only : {false, true}) {
    ASSERT_EQ(nodes.fetch(0, 1), "ok");
    ASSERT_EQ(here.links->cut(1, 0), "");
    if (!answers_only) {
      ASSERT_EQ(here.links->cut(0, 1), "");
    }
    nodes.begin(0, 1);
    EXPECT_FALSE(nodes.answer(0, "fetched", 700ms)) << "bytes came through a link that is cut";
    EXPECT_EQ(nodes.numbers(0)["holds"], 1u);
    nodes.begin(0, 2);
    EXPECT_EQ(nodes.answer(0, "fetched", nodes.how().bound), "ok");
    ASSERT_EQ(here.links->heal(1, 0), "");
    ASSERT_EQ(here.links->heal(0, 1), "");
    EXPECT_EQ(nodes.answer(0, "fetched", nodes.how().bound), "ok");
  }
  nodes.end_all();
}

TEST(processes_with_cut_links, a_peer_that_died_behind_a_cut_link_is_known_to_be_dead_by_its_next_life) {
  cut_off here;
  if (const std::string why = here.open(); !why.empty()) GTEST_SKIP() << why;
  watched& nodes = *here.nodes;
  ASSERT_TRUE(nodes.all_run());
  ASSERT_EQ(nodes.fetch(0, 1), "ok");
  nodes.stop(1);
  nodes.begin(0, 1);
  ASSERT_TRUE(nodes.wait_for(0, "posted", 1, nodes.how().bound));
  ASSERT_EQ(here.links->cut(1, 0), "");
  nodes.kill(1);
  EXPECT_FALSE(nodes.answer(0, "fetched", 300ms)) << "who told, through a link that is cut?";
  ASSERT_EQ(here.links->heal(1, 0), "");
  ASSERT_TRUE(nodes.start(1));
  const std::string told = nodes.answer(0, "fetched", nodes.how().bound).value_or("nothing");
  EXPECT_TRUE(told == "peer_lost" || told == "transfer_failed") << told;
  EXPECT_EQ(nodes.fetch(0, 1), "ok");
  nodes.end_all();
}

TEST(processes_with_cut_links, a_shutdown_behind_a_cut_link_returns_by_its_deadline) {
  cut_off here;
  if (const std::string why = here.open(); !why.empty()) GTEST_SKIP() << why;
  watched& nodes = *here.nodes;
  ASSERT_TRUE(nodes.all_run());
  ASSERT_EQ(nodes.fetch(0, 1), "ok");
  ASSERT_EQ(here.links->cut(0, 1), "");
  ASSERT_EQ(here.links->cut(1, 0), "");
  nodes.begin(0, 1);
  ASSERT_TRUE(nodes.wait_for(0, "posted", 1, nodes.how().bound));
  auto words = nodes.end(0, false);
  if (words.empty() && nodes.fell()) GTEST_SKIP() << "the library fell at the end, as told above";
  EXPECT_FALSE(words.empty());
  EXPECT_EQ(words["registered"], 0u);
  ASSERT_EQ(here.links->heal(0, 1), "");
  ASSERT_EQ(here.links->heal(1, 0), "");
  EXPECT_EQ(nodes.fetch(2, 1), "ok");
  nodes.end_all();
}

}  // namespace
}  // namespace holdfast::testing::processes
