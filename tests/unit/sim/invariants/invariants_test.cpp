// Proves that every invariant can fail: for each, a stream of events that keeps the promise passes, and the same
// stream with one thing wrong names that invariant first. Events are written by hand, so that a check is tested
// without the core that it watches.
#include "lives.hpp"
#include "wrong.hpp"

#include <properties/invariants/looks.hpp>
#include <properties/invariants/registry.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace holdfast::sim::streams {

std::vector<wrong> all_wrong() {
  std::vector<wrong> all;
  for (const auto& of_subject :
       {wrong_world(), wrong_budget(), wrong_arenas(), wrong_spans(), wrong_pools(), wrong_looks(), wrong_operations(),
        wrong_connections(), wrong_progress(), wrong_models()})
    all.insert(all.end(), of_subject.begin(), of_subject.end());
  return all;
}

namespace {

TEST(invariants, hold_over_a_whole_life) {
  told t;
  open(t, {.reclaim_after_ns = 20 * ms});
  build(t).core(event_id::reference_made, 9, 7, 0, 5000, 1);
  t.core(event_id::try_alloc_began, 1, 2 * mib)
      .core(event_id::try_alloc_ended, 1, 0, static_cast<std::uint64_t>(error_code::busy));
  start_get(t);
  finish_get(t);
  give_back(t);
  sweep(t.at(10 * ms));
  start_shutdown(t, 20 * ms);
  retire(t);
  unmap(t);
  settle(t);
  end_shutdown(t).rest();
  EXPECT_EQ(t.broken(), "") << t.message();
}

TEST(invariants, hold_over_a_reclamation) {
  told t;
  open(t, {.reclaim_after_ns = 20 * ms});
  build(t);
  give_back(t);
  t.at(30 * ms).core(event_id::reclaim_began, 1, 0, 30 * ms);
  reclaim(t).core(event_id::reclaim_ended, 1, 0, 1, mib);
  unmap(t);
  settle(t);
  t.core(event_id::ledger_refused, 1, 5000, 0, 4 * mib);
  sweep(t, 2).core(event_id::pressure_relieved, 1, 1, 0);
  t.core(event_id::alloc_refused, 1, 1, 5000, over_budget)
      .core(event_id::alloc_refused, 1, 0, 5 * mib, over_budget)
      .rest();
  invariants::look_at_gauge(t.looking(), 0, 0);
  EXPECT_EQ(t.broken(), "") << t.message();
}

TEST(invariants, hold_over_stays_in_quarantine) {
  told t;
  complete(admit(complete(admit(t))));
  t.core(event_id::quarantine_entered, 1, 3, 8, 64, 6, 1 << 4).core(event_id::quarantine_awaits, 1, 3, 8, 0, 0, 0);
  t.core(event_id::quarantine_fence_begun, 1, 3, 8, 5).core(event_id::quarantine_fence_begun, 1, 3, 8, 6);
  t.core(event_id::quarantine_left, 1, 3, 8, 64, 4, 5);
  admit(t).core(event_id::quarantine_abandoned, 1, 1, 512).rest();
  EXPECT_EQ(t.broken(), "") << t.message();
}

TEST(invariants, a_get_that_the_probe_gave_up_may_end_after_the_look) {
  told t;
  t.core(event_id::transport_state, 1, 0).core(event_id::operation_accepted, 20, 100, 200, 64, 0);
  t.core(event_id::operation_submitted, 20, 3).core(event_id::operation_ended, 20, 0, 0);
  t.core(event_id::transport_capabilities, 1, 11301, 0, 0, 0);
  EXPECT_EQ(t.broken(), "") << t.message();
}

TEST(invariants, have_names_sentences_and_no_twins) {
  std::set<std::string> ids;
  for (const check* c : invariants::all_checks()) {
    EXPECT_TRUE(ids.insert(std::string(c->id())).second) << c->id();
    EXPECT_FALSE(c->sentence().empty()) << c->id();
  }
  EXPECT_GT(ids.size(), 40u);
}

TEST(invariants, forget_the_last_run) {
  {
    told t;
    build(t);
    EXPECT_EQ(t.broken(), "");
  }
  told t;
  build(t);
  EXPECT_EQ(t.broken(), "") << t.message();
}

class every_invariant : public testing::TestWithParam<wrong> {};

TEST_P(every_invariant, names_what_is_wrong) {
  told t;
  GetParam().tell(t);
  EXPECT_EQ(t.broken(), GetParam().invariant) << GetParam().what << ": " << t.message();
}

INSTANTIATE_TEST_SUITE_P(one_thing_wrong, every_invariant, testing::ValuesIn(all_wrong()));

TEST(invariants, are_each_broken_by_a_stream_of_this_directory) {
  std::set<std::string> tried;
  for (const wrong& w : all_wrong()) tried.insert(w.invariant);
  for (const check* c : invariants::all_checks()) EXPECT_TRUE(tried.contains(std::string(c->id()))) << c->id();
}

}  // namespace
}  // namespace holdfast::sim::streams
