// Every mark is given a stream of events that reaches it, and one in which something little is missing: a mark that is
// always reached says as little as one that never is.
#include <properties/marks/mark.hpp>

#include <holdfast/base/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace holdfast::marks {
namespace {

using stream = std::vector<logged_event>;

template <class Kind>
logged_event event(Kind kind, std::uint32_t fiber, std::initializer_list<std::uint64_t> fields) {
  logged_event e;
  e.kind = kind_of(kind);
  e.fiber = fiber;
  for (const std::uint64_t value : fields) e.fields[e.field_count++] = value;
  return e;
}

struct row {
  const char* id;
  stream reaches;
  stream does_not;
};

std::vector<row> rows() {
  using enum event_id;
  constexpr std::uint64_t mib = 1 << 20;
  constexpr auto stale = static_cast<std::uint64_t>(error_code::stale_key);
  const auto arming = event(progress_state, 1, {1, 1, 0});
  const auto sleeping = event(progress_state, 1, {1, 2, 0});
  const auto woken = event(progress_woke, 1, {1, 1});
  const auto asked = event(operation_accepted, 2, {7, 1, 1, 64, 0});
  const auto submitted = event(operation_submitted, 1, {7, 1});
  const auto called_back = event(hardware_event::driver_callback, 1, {3, 0});
  return {
      {"PM-H10",
       {event(ledger_reserved, 1, {1, 2 * mib, 3 * mib}), event(ledger_refused, 2, {1, 2 * mib, 3 * mib, 4 * mib})},
       {event(ledger_reserved, 1, {1, 2 * mib, 3 * mib}), event(ledger_committed, 1, {1, 2 * mib, 3 * mib}),
        event(ledger_refused, 2, {1, 2 * mib, 3 * mib, 4 * mib})}},
      {"PM-H21",
       {event(growth_claimed, 1, {1, 64}), event(span_granted, 1, {1, 1, 0, 1, 64})},
       {event(growth_claimed, 1, {1, 64}), event(growth_started, 1, {1, mib, 0, 64}),
        event(span_granted, 1, {1, 1, 0, 1, 64})}},
      {"PM-H39", {event(arena_retired, 1, {1, 1, 2, 1, 1})}, {event(arena_retired, 1, {1, 1, 2, 0, 1})}},
      {"PM-H41",
       {event(hardware_event::op_began, 1, {3}), event(gate_closed, 2, {1, 1}),
        event(hardware_event::op_ended, 1, {3, 0, 1})},
       {event(gate_closed, 2, {1, 1}), event(hardware_event::op_began, 1, {3}),
        event(hardware_event::op_ended, 1, {3, 0, 1})}},
      {"PM-H42",
       {event(gate_closed, 1, {1, 2}), event(gate_drained, 2, {1})},
       {event(gate_closed, 1, {1, 2}), event(gate_drained, 1, {1})}},
      {"PM-H43", {event(arena_retired, 1, {1, 1, 0, 0, 3})}, {event(arena_retired, 1, {1, 1, 0, 0, 0})}},
      {"PM-H66",
       {event(arena_published, 1, {1, 1, mib, mib, 0, 1})},
       {event(arena_published, 1, {1, 1, mib, mib, 0, 0})}},
      {"PM-H67", {event(arena_retired, 1, {1, 1, 0, 0, 2})}, {event(arena_retired, 1, {1, 1, 0, 0, 4})}},
      {"TP-H1", {arming, asked, submitted}, {arming, asked, sleeping, woken, submitted}},
      {"TP-H2", {arming, asked, sleeping, woken}, {arming, sleeping, asked, woken}},
      {"TP-H3", {arming, called_back}, {arming, sleeping, woken, called_back}},
      {"TP-H64",
       {event(endpoint_state, 1, {8, 3, 0, 1}), event(endpoint_state, 1, {8, 3, 5, 1}),
        event(endpoint_state, 1, {8, 4, 0, 1})},
       {event(endpoint_state, 1, {8, 3, 0, 1}), event(endpoint_state, 1, {8, 3, 5, 1}),
        event(endpoint_state, 1, {9, 4, 0, 1})}},
      {"TP-H65", {event(data_endpoint_refused, 1, {3, 0})}, {event(data_endpoint_refused, 1, {3, 12})}},
      {"TP-H7",
       {asked, event(operation_ended, 1, {7, 0, 0})},
       {event(operation_accepted, 2, {7, 1, 1, 64, 1}), event(operation_ended, 1, {7, 0, 0})}},
      {"TP-H10", {event(table_swept, 1, {1, 2})}, {event(table_swept, 1, {1, 0})}},
      {"TP-H16",
       {event(key_used, 1, {5, 7}), event(key_state, 1, {5, 1, 1, 1})},
       {event(key_used, 1, {5, 7}), event(operation_ended, 1, {7, 1, 0}), event(key_state, 1, {5, 1, 1, 1})}},
      {"TP-H44", {event(loss_sent, 1, {2, 3, 4})}, {event(peer_lost, 1, {2, 3, 4, 0, 0})}},
      {"TP-H18",
       {event(hello_accepted, 1, {3, 100, 200, 2}), event(hello_accepted, 1, {4, 100, 201, 2}),
        event(hardware_event::op_ended, 2, {9, 0, stale})},
       {event(hello_accepted, 1, {3, 100, 200, 2}), event(hello_accepted, 1, {4, 100, 200, 2}),
        event(hardware_event::op_ended, 2, {9, 0, stale})}},
  };
}

// Through the detector alone, as the watch hands events on.
bool reached_by(mark_detector& detector, stream events) {
  detector.begin();
  detector.reached_in_this_run = false;
  std::uint64_t number = 0;
  for (logged_event& e : events) {
    e.number = ++number;
    if (std::ranges::find(detector.kinds(), e.kind) != detector.kinds().end()) detector.see(e);
  }
  return detector.reached_in_this_run;
}

mark_detector* find(const std::string& id) {
  const auto found = std::ranges::find(all_marks(), id, &reached_mark::id);
  return found == all_marks().end() ? nullptr : found->detector.get();
}

TEST(Marks, EachIsReachedByWhatItSaysAndNotByLess) {
  for (const row& r : rows()) {
    mark_detector* const detector = find(r.id);
    ASSERT_NE(detector, nullptr) << r.id;
    EXPECT_FALSE(reached_by(*detector, r.does_not)) << r.id;
    EXPECT_TRUE(reached_by(*detector, r.reaches)) << r.id;
    EXPECT_FALSE(reached_by(*detector, {})) << r.id << " remembers an earlier run";
    EXPECT_FALSE(reached_by(*detector, r.does_not)) << r.id << " remembers an earlier run";
  }
}

TEST(Marks, AreInOrderEachOnceWithASentence) {
  const auto& all = all_marks();
  ASSERT_FALSE(all.empty());
  for (const reached_mark& mark : all) {
    EXPECT_FALSE(mark.sentence.empty()) << mark.id;
    EXPECT_FALSE(mark.detector->kinds().empty()) << mark.id;
    EXPECT_EQ(std::ranges::count(all, mark.id, &reached_mark::id), 1) << mark.id;
  }
  const auto place = [&all](std::string_view id) {
    return std::ranges::find(all, id, &reached_mark::id) - all.begin();
  };
  EXPECT_LT(place("TP-H7"), place("TP-H10"));
  EXPECT_LT(place("PM-H67"), place("TP-H1"));
}

}  // namespace
}  // namespace holdfast::marks
