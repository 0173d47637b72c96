// Quarantine: what each kind of evidence covers and what it does not, that an entry leaves once, what is counted. Every
// mismatch of evidence and entry is tried by itself. With real threads the races are tried often; in the simulator the
// seeds do it.
#include <tests/unit/both/base_support.hpp>

#include <holdfast/base/quarantine.hpp>
#include <properties/forged_evidence.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::base_test {

namespace {

struct kept : quarantine_entry {};

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
constexpr platform::time_point long_ago{platform::duration(1'000)};

// An arena whose unmap was not confirmed, a span whose transfer has an unknown fate, a record whose owner is gone.
constexpr quarantine_terms an_arena{.kind = quarantine_kind::arena,
                                    .id = 7,
                                    .reason = quarantine_reason::unmap_timeout,
                                    .bytes = 4096,
                                    .answer = true,
                                    .incarnation = 100,
                                    .epoch = 3};
constexpr quarantine_terms a_span{.kind = quarantine_kind::span,
                                  .id = 7,
                                  .reason = quarantine_reason::indeterminate,
                                  .bytes = 512,
                                  .operation = 40,
                                  .incarnation = 100,
                                  .epoch = 3,
                                  .needs_gets_fenced = true};
constexpr quarantine_terms a_record{.kind = quarantine_kind::allocation,
                                    .id = 8,
                                    .reason = quarantine_reason::owner_dropped,
                                    .bytes = 64,
                                    .fence = true,
                                    .context = 50};

evidence confirmed(const quarantine_terms& terms) { return evidence::answered(terms.kind, terms.id, true); }

bool covers(const evidence& shown, const quarantine_terms& terms) {
  return shown.covers(quarantine_view{terms, 1, long_ago, 10});
}

// A quarantine with entries, taken apart at its end.
struct shelf {
  explicit shelf(platform::host& host) : at(host), log(host.clock(), 64, event_level::trace), q(1, log) {}
  std::size_t events(event_id id) const {
    std::size_t n = 0;
    for (const event_record& e : log.copy_recent()) n += e.id == id;
    return n;
  }
  surroundings at;
  event_log log;
  kept first, second, third;
  // Destroyed first: what is inside is abandoned before the entries go.
  quarantine q;
};

bool same(const quarantine_sum& sum, std::uint64_t entries, std::uint64_t bytes) {
  return sum == quarantine_sum{entries, bytes};
}

}  // namespace

TEST(Evidence, ThatIsEmptyOrMadeFromAFailureProvesNothing) {
  // An entry that every kind could end, with every number 0 that a careless comparison would match.
  constexpr quarantine_terms anything{.answer = true, .operation = 1, .epoch = 1, .fence = true, .context = 1};
  evidence spent = evidence::completed(1);
  EXPECT_TRUE(covers(spent, anything));
  const evidence taken = std::move(spent);
  evidence reused;
  reused = evidence::completed(1);
  const evidence taken_again = std::move(reused);
  EXPECT_TRUE(covers(taken, anything) && covers(taken_again, anything));
  std::vector<evidence> nothing;
  nothing.push_back(evidence());
  nothing.push_back(std::move(spent));
  nothing.push_back(std::move(reused));
  nothing.push_back(evidence::answered(quarantine_kind::arena, 0, false));
  nothing.push_back(evidence::completed(0));
  nothing.push_back(evidence::terminated(1, termination::device_reset, "driver", false));
  nothing.push_back(evidence::terminated(0, termination::device_reset, "driver", true));
  for (const evidence& each : nothing) {
    EXPECT_EQ(each.kind(), evidence_kind::none);
    EXPECT_EQ(each.subject(), 0u);
    EXPECT_FALSE(covers(each, anything));
    EXPECT_FALSE(covers(each, quarantine_terms{}));
  }
}

TEST(Evidence, OfAnAnswerCoversExactlyTheThingItIsAbout) {
  EXPECT_TRUE(covers(confirmed(an_arena), an_arena));
  EXPECT_FALSE(covers(evidence::answered(quarantine_kind::arena, 8, true), an_arena));
  EXPECT_FALSE(covers(evidence::answered(quarantine_kind::region, 7, true), an_arena));
  EXPECT_FALSE(covers(confirmed(a_span), a_span)) << "a span does not name an answer";
  EXPECT_FALSE(covers(confirmed(a_record), a_record)) << "neither does a record";
}

TEST(Evidence, OfACompletionCoversExactlyWhatThatOperationHolds) {
  EXPECT_TRUE(covers(evidence::completed(40), a_span));
  EXPECT_FALSE(covers(evidence::completed(41), a_span));
  EXPECT_FALSE(covers(evidence::completed(7), a_span)) << "the operation counts, not the span";
  EXPECT_FALSE(covers(evidence::completed(7), an_arena)) << "an arena names no operation";
}

TEST(Evidence, OfAWitnessCoversThatLifeOfThatTransport) {
  EXPECT_TRUE(covers(forged_evidence::transport_gone(100, 3, false), an_arena));
  EXPECT_TRUE(covers(forged_evidence::transport_gone(100, 3, true), an_arena));
  EXPECT_FALSE(covers(forged_evidence::transport_gone(101, 3, true), an_arena));
  EXPECT_FALSE(covers(forged_evidence::transport_gone(100, 4, true), an_arena));
  EXPECT_FALSE(covers(forged_evidence::transport_gone(100, 2, true), an_arena));
  EXPECT_TRUE(covers(forged_evidence::transport_gone(100, 3, true), a_span));
  EXPECT_FALSE(covers(forged_evidence::transport_gone(100, 3, false), a_span)) << "its writes may go on";
  EXPECT_FALSE(covers(forged_evidence::transport_gone(0, 0, true), a_record)) << "a record names no transport";
}

TEST(Evidence, OfATerminationCoversWhatThatContextHeld) {
  const evidence reaped = evidence::terminated(50, termination::process_ended, "parent", true);
  EXPECT_TRUE(covers(reaped, a_record));
  EXPECT_STREQ(reaped.who(), "parent");
  EXPECT_EQ(reaped.how(), termination::process_ended);
  EXPECT_FALSE(covers(evidence::terminated(51, termination::process_ended, "parent", true), a_record));
  EXPECT_FALSE(covers(reaped, an_arena)) << "an arena names no context";
}

TEST(Evidence, OfAnyKindCoversNothingThatNamesNoEvidence) {
  constexpr quarantine_terms for_ever{.kind = quarantine_kind::chunk, .id = 7, .bytes = 1};
  EXPECT_EQ(for_ever.accepts(), 0u);
  EXPECT_FALSE(covers(confirmed(for_ever), for_ever));
  EXPECT_FALSE(covers(evidence::completed(7), for_ever));
  EXPECT_FALSE(covers(forged_evidence::transport_gone(0, 0, true), for_ever));
  EXPECT_FALSE(covers(evidence::terminated(7, termination::device_reset, "driver", true), for_ever));
}

TEST(Evidence, OfFencesCoversAnEntryThatCameBeforeThem) {
  run_on_side([](platform::host& host) {
    shelf s(host);
    quarantine_terms other = a_record;
    other.id = 9;
    expect(s.q.admit(s.first, a_record, long_ago) && s.q.admit(s.second, other, long_ago), "records enter");
    expect(s.q.admit(s.third, a_span, long_ago) && !s.q.begin_fence(s.third), "fences end no span");
    auto about_first = s.q.begin_fence(s.first);
    expect(about_first && about_first->id() == 8, "fences may be recorded for a record");
    expect(!evidence::fences_passed(std::move(*about_first), false).covers(s.first.view()), "not all have passed");
    expect(about_first->stamp() == 0, "the request is spent");
    expect(!evidence::fences_passed(std::move(*about_first), true).covers(s.first.view()), "and proves nothing again");

    const evidence passed = evidence::fences_passed(*s.q.begin_fence(s.first), true);
    expect(!s.q.discharge(s.second, passed), "fences are about one record");
    quarantine_view elsewhere = s.first.view();
    elsewhere.quarantine = 2;
    expect(!passed.covers(elsewhere), "stamps of one quarantine mean nothing in another");
    quarantine_view unfenced = s.first.view();
    unfenced.terms.fence = false;
    expect(!passed.covers(unfenced), "what fences do not end stays");
    quarantine_view of_another_kind = s.first.view();
    of_another_kind.terms.kind = quarantine_kind::prefix;
    expect(!passed.covers(of_another_kind), "a kind is part of the name");
    expect(s.q.discharge(s.first, passed) && !s.q.discharge(s.first, passed), "the record leaves once");

    expect(s.q.admit(s.first, a_record, long_ago), "its ticket was abandoned: it is back");
    expect(!s.q.discharge(s.first, passed), "fences of its last stay prove nothing about this one");
    expect(s.q.discharge(s.first, evidence::fences_passed(*s.q.begin_fence(s.first), true)), "new ones do");
    expect(!s.q.begin_fence(s.first), "what is outside needs no fences");
  });
}

TEST(Evidence, OfFencesEndsWithTheStamps) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    kept before, last, after;
    quarantine q(1, at.log, lock_ranks::base_quarantine, most - 2);
    expect(q.admit(before, a_record, long_ago) && before.view().stamp == most - 2, "stamps begin where they are told");
    auto proof = q.begin_fence(before);
    expect(proof && proof->stamp() == most - 1, "a fence takes the next stamp");
    expect(q.admit(last, a_record, long_ago) && last.view().stamp == most, "the last stamp");
    expect(!q.begin_fence(last) && !q.begin_fence(before), "no fence can be ordered behind it");
    expect(q.admit(after, a_record, long_ago) && after.view().stamp == most, "entries may still come in");
    const evidence passed = evidence::fences_passed(std::move(*proof), true);
    expect(!q.discharge(last, passed) && !q.discharge(after, passed), "an old fence proves nothing about them");
    expect(q.discharge(before, passed), "it proves what it proved");
    quarantine_chain out;
    expect(q.abandon_all(out) == 2, "two are left");
    while (out.pop_front() != nullptr) {
    }
  });
}

TEST(Quarantine, CountsWhatItKeepsByKindAndReason) {
  run_on_side([](platform::host& host) {
    shelf s(host);
    expect(s.q.admit(s.first, an_arena, long_ago) && s.q.admit(s.second, a_span, long_ago), "two enter");
    const quarantine_totals both = s.q.totals();
    expect(same(both.inside, 2, 4608), "bytes add up");
    expect(same(both.by_kind[static_cast<std::size_t>(quarantine_kind::arena)], 1, 4096), "by kind");
    expect(same(both.by_reason[static_cast<std::size_t>(quarantine_reason::indeterminate)], 1, 512), "by reason");
    expect(s.q.holds(s.first) && !s.q.holds(s.third), "it knows who is inside");
    expect(s.first.view().since == long_ago && s.first.view().stamp < s.second.view().stamp, "stamps rise");

    quarantine_view list[3];
    expect(s.q.snapshot_into(list) == 2, "all are listed");
    expect(list[0].terms.id == 7 && list[1].terms.kind == quarantine_kind::span && list[1].quarantine == 1, "in order");
    expect(s.q.snapshot_into(std::span(list, 1)) == 2, "it says how many there are");

    expect(s.q.discharge(s.first, confirmed(an_arena)), "an arena's unmap was confirmed after all");
    expect(same(s.q.totals().inside, 1, 512) && s.q.snapshot_into(list) == 1, "what left is not counted");
    expect(s.q.discharge(s.second, evidence::completed(40)), "a late callback");
    expect(same(s.q.totals().inside, 0, 0), "nothing is left");
    expect(s.events(event_id::quarantine_entered) == 2 && s.events(event_id::quarantine_left) == 2, "each is an event");
  });
}

TEST(Quarantine, ChangesTheReasonOfWhatIsInsideAndNothingElse) {
  run_on_side([](platform::host& host) {
    shelf s(host);
    expect(!s.q.restate(s.first, quarantine_reason::unmap_unknown), "what is outside has no reason");
    expect(s.q.admit(s.first, an_arena, long_ago), "it enters");
    const std::uint64_t stamp = s.first.view().stamp;
    expect(s.q.restate(s.first, quarantine_reason::unmap_unknown), "its answer was an error");
    quarantine_terms again = a_record;
    again.reason = quarantine_reason::unmap_refused;
    again.bytes = 1;
    expect(!s.q.admit(s.first, again, platform::time_point(platform::duration(2'000))), "it was inside");
    const quarantine_view now = s.first.view();
    expect(now.terms.reason == quarantine_reason::unmap_refused, "the reason changed");
    expect(now.terms.kind == quarantine_kind::arena && now.terms.bytes == 4096 && now.since == long_ago,
           "nothing else");
    expect(now.stamp == stamp && now.terms.accepts() == an_arena.accepts(), "neither its stamp nor what could end it");
    const quarantine_totals sums = s.q.totals();
    expect(same(sums.inside, 1, 4096), "it is counted once");
    expect(same(sums.by_reason[static_cast<std::size_t>(quarantine_reason::unmap_refused)], 1, 4096) &&
               same(sums.by_reason[static_cast<std::size_t>(quarantine_reason::unmap_timeout)], 0, 0),
           "under its reason");
    expect(s.q.discharge(s.first, confirmed(an_arena)), "it leaves");
    expect(!s.q.restate(s.first, quarantine_reason::unmap_unknown) && !s.q.holds(s.first), "restating revives nothing");
    expect(s.events(event_id::quarantine_restated) == 2, "each change is an event");
  });
}

TEST(Quarantine, SaysWhatItRefused) {
  run_on_side([](platform::host& host) {
    shelf s(host);
    expect(!s.q.discharge(s.first, confirmed(an_arena)), "it is not inside");
    expect(s.events(event_id::quarantine_evidence_refused) == 0, "which is no event: evidence came first");
    expect(s.q.admit(s.first, an_arena, long_ago), "it enters");
    expect(!s.q.discharge(s.first, evidence()) && !s.q.discharge(s.first, evidence::completed(1)), "nothing fits");
    expect(s.events(event_id::quarantine_evidence_refused) == 2 && s.q.holds(s.first), "both were events");
  });
}

TEST(Quarantine, TakesOutAllThatOneEvidenceCovers) {
  run_on_side([](platform::host& host) {
    shelf s(host);
    quarantine_terms of_another_life = an_arena;
    of_another_life.id = 9;
    of_another_life.epoch = 4;
    expect(s.q.admit(s.first, a_span, long_ago) && s.q.admit(s.second, of_another_life, long_ago) &&
               s.q.admit(s.third, an_arena, long_ago),
           "three enter");
    quarantine_chain out;
    expect(s.q.discharge_all(evidence(), out) == 0 && out.empty(), "nothing proves nothing");
    expect(s.q.discharge_all(forged_evidence::transport_gone(100, 3, false), out) == 1, "the span's writes go on");
    expect(out.pop_front() == &s.third, "the arena left");
    expect(s.q.discharge_all(forged_evidence::transport_gone(100, 3, true), out) == 1, "now they ended");
    expect(out.pop_front() == &s.first && out.empty(), "the span left");
    expect(s.q.holds(s.second) && same(s.q.totals().inside, 1, 4096), "another life's arena stays");
    expect(!s.q.discharge(s.first, evidence::completed(40)), "who is in a chain is settled by its taker");
    expect(s.q.admit(s.first, a_span, long_ago) && s.q.admit(s.third, an_arena, long_ago), "two come back");
    expect(s.q.discharge_all(forged_evidence::transport_gone(100, 3, true), out) == 2, "both are taken at once");
    expect(out.pop_front() == &s.first && out.pop_front() == &s.third, "the oldest is first");
  });
}

TEST(Quarantine, AbandonsWhatIsLeftAndFreesNothing) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    event_log log(host.clock(), 64, event_level::trace);
    kept first, second, third;
    {
      quarantine q(5, log);
      quarantine_chain out;
      expect(q.abandon_all(out) == 0, "there is nothing to give up");
      expect(q.admit(first, an_arena, long_ago), "it enters");
      expect(q.abandon_all(out) == 1 && out.pop_front() == &first, "it is given up");
      expect(same(q.totals().inside, 0, 0) && same(q.totals().abandoned, 1, 4096), "and counted as such");
      expect(!q.discharge(first, confirmed(an_arena)) && !q.holds(first), "no evidence brings it back");
      expect(!q.admit(first, an_arena, long_ago) && same(q.totals().inside, 0, 0), "and it is not counted twice");
      expect(q.admit(second, a_span, long_ago) && q.admit(third, a_record, long_ago), "two are left at the end");
    }
    std::vector<event_record> said;
    for (const event_record& e : log.copy_recent())
      if (e.id == event_id::quarantine_abandoned) said.push_back(e);
    expect(said.size() == 2, "giving up is an event");
    expect(said[1].fields[0] == 5 && said[1].fields[1] == 2 && said[1].fields[2] == 576, "with what it was about");
  });
}

TEST(Quarantine, KeepsSumsExactThatLeave64Bits) {
  run_on_side([](platform::host& host) {
    shelf s(host);
    quarantine_terms huge = an_arena;
    huge.bytes = most;
    expect(s.q.admit(s.first, huge, long_ago) && s.q.admit(s.second, an_arena, long_ago), "two enter");
    expect(same(s.q.totals().inside, 2, most), "what does not fit is said to be the most");
    expect(s.q.discharge(s.first, confirmed(huge)), "the huge one leaves");
    expect(same(s.q.totals().inside, 1, 4096), "the rest is exact");
  });
}

TEST(Quarantine, LetsExactlyOneSettleAnEntry) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    for (unsigned round = 0; round < effort(500, 2); ++round) {
      kept entry, other;
      quarantine q(1, at.log);
      quarantine_terms both = an_arena;
      both.operation = 40;
      expect(q.admit(entry, both, long_ago), "it enters");
      platform::atomic<int> settled{0};
      {
        team others;
        others.start([&] { settled.fetch_add(q.discharge(entry, evidence::completed(40)) ? 1 : 0); });
        others.start([&] { settled.fetch_add(q.discharge(entry, confirmed(both)) ? 1 : 0); });
        others.start([&] {
          quarantine_chain out;
          q.discharge_all(forged_evidence::transport_gone(100, 3, true), out);
          while (out.pop_front() != nullptr) settled.fetch_add(1);
        });
        others.start([&] { q.restate(entry, quarantine_reason::unmap_unknown); });
      }
      expect(settled.load() == 1, "one of three settles it");
      expect(!q.holds(entry) && same(q.totals().inside, 0, 0), "it is outside");
    }
  });
}

TEST(Quarantine, StopsTheProcessWhenAnEntryIsDestroyedInside) {
  const auto seen = stop_on_side([](platform::host& host) {
    surroundings at(host);
    quarantine q(1, at.log);
    std::optional<kept> entry(std::in_place);
    q.admit(*entry, an_arena, long_ago);
    entry.reset();
  });
  EXPECT_TRUE(seen.stopped);
  EXPECT_NE(seen.said.find("destroyed inside its quarantine"), std::string::npos) << seen.said;
}

TEST(Quarantine, StopsTheProcessWhenAnEntryIsBroughtToAnother) {
  const auto seen = stop_on_side([](platform::host& host) {
    surroundings at(host);
    kept entry;
    quarantine home(1, at.log);
    quarantine other(2, at.log);
    home.admit(entry, an_arena, long_ago);
    other.discharge(entry, confirmed(an_arena));
  });
  EXPECT_TRUE(seen.stopped);
  EXPECT_NE(seen.said.find("brought to another"), std::string::npos) << seen.said;
}

TEST(Quarantine, SpeaksTheNamesOfItsEvents) {
  const auto listed = [](event_id id, std::size_t field) { return std::string(describe(id).fields[field]); };
  std::string kinds = "kind:enum(", reasons = "reason:enum(", proofs = "evidence:enum(";
  for (std::size_t i = 0; i < quarantine_kinds; ++i)
    kinds.append(i == 0 ? "" : "|").append(name_of(static_cast<quarantine_kind>(i)));
  for (std::size_t i = 0; i < quarantine_reasons; ++i)
    reasons.append(i == 0 ? "" : "|").append(name_of(static_cast<quarantine_reason>(i)));
  for (std::size_t i = 0; i <= static_cast<std::size_t>(evidence_kind::termination); ++i)
    proofs.append(i == 0 ? "" : "|").append(name_of(static_cast<evidence_kind>(i)));
  EXPECT_EQ(listed(event_id::quarantine_entered, 1), kinds + ")");
  EXPECT_EQ(listed(event_id::quarantine_entered, 4), reasons + ")");
  EXPECT_EQ(listed(event_id::quarantine_restated, 3), reasons + ")");
  EXPECT_EQ(listed(event_id::quarantine_left, 4), proofs + ")");
  EXPECT_EQ(listed(event_id::quarantine_evidence_refused, 3), proofs + ")");
}

}  // namespace holdfast::base_test
