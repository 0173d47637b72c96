// The capacity ledger and the generations: sums, refusals, epochs that cannot be missed, and books that do not add up.
#include <tests/unit/both/base_support.hpp>

#include <holdfast/base/capacity_ledger.hpp>
#include <holdfast/base/generation.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <set>
#include <vector>

namespace holdfast::base_test {

namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

// Reserves `bytes`, waiting for room as often as it takes. The test outlives ledger and task.
task<result<reservation>> reserve_patiently(task_context, capacity_ledger* ledger, std::uint64_t bytes,
                                            platform::time_point deadline) {
  for (;;) {
    const std::uint64_t seen = ledger->epoch();
    auto reserved = ledger->reserve(bytes);
    if (reserved || reserved.error().code != error_code::budget_exceeded) co_return reserved;
    auto end = co_await ledger->wait_past(seen, deadline);
    if (end != wait_end::signaled) co_return fail(error_code::timed_out, "test");
  }
}

}  // namespace

TEST(Ledger, ChargesReservationsAndGivesThemBackWhenDropped) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    capacity_ledger ledger(1, 100, at.log);
    {
      auto one = ledger.reserve(60);
      expect(one && one->bytes() == 60 && ledger.snapshot().charged_bytes == 60, "reserved bytes are charged");
      auto two = ledger.reserve(41);
      expect(!two && two.error().code == error_code::budget_exceeded && two.error().numbers[0] == 41 &&
                 two.error().numbers[1] == 60 && two.error().numbers[2] == 100 && two.error().identity == 1,
             "what does not fit is refused with the numbers");
      auto three = ledger.reserve(40);
      expect(three.has_value() && ledger.snapshot().charged_bytes == 100, "what fits exactly is granted");
      auto moved = std::move(*three);
      expect(ledger.snapshot().charged_bytes == 100 && !*three, "moving charges nothing");
      moved = reservation();
      expect(ledger.snapshot().charged_bytes == 60, "moved over is dropped");
    }
    const auto books = ledger.snapshot();
    expect(books.charged_bytes == 0 && books.reserved_bytes == 0 && books.charged_bytes_high == 100 &&
               books.refusals == 1 && !books.corrupt,
           "everything came back");
  });
}

TEST(Ledger, RefusesSumsThatWouldWrap) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    capacity_ledger ledger(1, most - 1, at.log);
    auto first = ledger.reserve(100);
    expect(first.has_value(), "a little fits");
    expect(!ledger.reserve(most) && !ledger.reserve(most - 100), "nearly everything does not fit beside it");
    expect(!ledger.reserve(0) && ledger.reserve(0).error().code == error_code::out_of_range, "nothing is no request");
    auto second = ledger.reserve(100);
    expect(!first->raise_to(most) && first->bytes() == 100 && ledger.snapshot().corrupt,
           "a raise that leaves 64 bits marks the books corrupt");
  });
}

TEST(Ledger, RaisesAboveTheCeilingAndNeverLowers) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    capacity_ledger ledger(1, 100, at.log);
    auto one = ledger.reserve(60);
    expect(one->raise_to(60) && one->raise_to(100), "up to the ceiling is within it");
    expect(!one->raise_to(130) && one->bytes() == 130 && ledger.snapshot().charged_bytes == 130,
           "above is charged, too");
    expect(!one->raise_to(10) && one->bytes() == 130 && ledger.snapshot().charged_bytes == 130,
           "lowering changes nothing");
    expect(!ledger.reserve(1).has_value(), "above the ceiling there is no room");
    grant charge = one->commit();
    expect(!*one && charge.bytes() == 130 && ledger.snapshot().charged_bytes == 130 &&
               ledger.snapshot().reserved_bytes == 0,
           "the charge is what was raised to");
    one->drop();
    charge.release();
    charge.release();
    expect(ledger.snapshot().charged_bytes == 0 && !ledger.snapshot().corrupt, "released once");
  });
}

TEST(Ledger, AGrantThatIsDroppedKeepsItsCharge) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    capacity_ledger ledger(1, 100, at.log);
    {
      const grant forgotten = ledger.reserve(30)->commit();
      expect(forgotten.bytes() == 30, "a charge of 30 bytes");
    }
    expect(ledger.snapshot().charged_bytes == 30, "nobody confirmed that its memory is gone");
    grant whole = ledger.reserve(50)->commit();
    expect(!whole.split(51) && whole.bytes() == 50, "more than there is cannot be cut off");
    grant part = whole.split(20);
    expect(part.bytes() == 20 && whole.bytes() == 30, "a part is cut off");
    part.release();
    expect(ledger.snapshot().charged_bytes == 60, "a part is released by itself");
    ledger.release(whole.detach());
    whole.release();
    expect(ledger.snapshot().charged_bytes == 30 && !ledger.snapshot().corrupt, "a charge may travel as a number");
  });
}

TEST(Ledger, OverReleaseKeepsTheRestAndTakesNoNewWork) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    capacity_ledger ledger(1, 100, at.log);
    auto open = ledger.reserve(10);
    grant held = ledger.reserve(20)->commit();
    ledger.release(21);
    auto books = ledger.snapshot();
    expect(books.corrupt && books.over_releases == 1 && books.charged_bytes == 10, "clamped, counted, and marked");
    expect(ledger.reserve(1).error().code == error_code::corrupt, "no new work");
    held.release();
    expect(ledger.snapshot().over_releases == 2 && ledger.snapshot().charged_bytes == 10, "nothing is refunded twice");
    open->drop();
    expect(ledger.snapshot().charged_bytes == 0, "what is recorded still counts down");
  });
}

TEST(Ledger, AParentsCeilingBindsAndIsChargedAlike) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    capacity_ledger process(1, 100, at.log);
    capacity_ledger plan(2, 80, at.log, lock_ranks::base_ledger, &process);
    auto other = process.reserve(50);
    auto refused = plan.reserve(60);
    expect(!refused && refused.error().identity == 1, "the parent refuses, and says so");
    expect(plan.snapshot().charged_bytes == 0 && plan.snapshot().epoch == 1, "the plan is as before");
    auto kept = plan.reserve(40);
    expect(kept && kept->raise_to(45) && process.snapshot().charged_bytes == 95, "both are charged");
    grant held = kept->commit();
    other->drop();
    expect(process.snapshot().epoch == 2, "the refused one may try again");
    held.release();
    expect(plan.snapshot().charged_bytes == 0 && process.snapshot().charged_bytes == 0, "both are given back");
    expect(plan.snapshot().epoch == 2 && process.snapshot().epoch == 3, "a released grant moves both epochs");
  });
}

TEST(Ledger, EpochsMoveForWhatBecameAvailableAndNotForAnAttempt) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    capacity_ledger ledger(1, 100, at.log);
    const auto begun = ledger.epoch();
    ledger.reserve(50)->drop();
    expect(ledger.epoch() == begun, "an attempt of one's own moves nothing");
    auto transient = ledger.reserve(80);
    expect(!ledger.reserve(30), "somebody is refused meanwhile");
    transient->drop();
    expect(ledger.epoch() == begun + 1, "so giving back is told");
    ledger.reserve(10)->commit().release();
    expect(ledger.epoch() == begun + 2, "a released grant is told");
    expect(ledger.wait_past_blocking(begun, platform::never), "what passed is not waited for");
    expect(!ledger.wait_past_blocking(begun + 2, at.in(millisecond)), "what did not come ends at the deadline");
  });
}

TEST(Ledger, WhoWaitsForRoomAlwaysHearsOfIt) {
  run_on_side(
      [](platform::host& host) {
        surroundings at(host);
        for (unsigned round = 0; round < effort(1'000, 1); ++round) {
          capacity_ledger ledger(1, 100, at.log);
          grant held = ledger.reserve(60)->commit();
          auto transient = ledger.reserve(30);
          kept_completion<result<reservation>> ended[2];
          {
            team others;
            others.start([&] { held.release(); });
            others.start([&] { transient->drop(); });
            others.start([&] {
              const auto seen = ledger.epoch();
              if (!ledger.reserve(20)) expect(ledger.wait_past_blocking(seen, platform::never), "a thread hears of it");
            });
            for (auto& each : ended)
              expect(start_here(reserve_patiently(at.context(), &ledger, 40, platform::never), each), "a task begins");
          }
          for (auto& each : ended) expect(each.wait().has_value(), "both have their bytes in the end");
          expect(ledger.snapshot().charged_bytes == 80 && !ledger.snapshot().corrupt, "the books add up");
        }
      },
      2);
}

TEST(Ledger, TheCeilingHoldsAgainstThreads) {
  run_on_side([](platform::host& host) {
    surroundings at(host);
    capacity_ledger ledger(1, 10, at.log);
    {
      team others;
      for (unsigned member = 0; member < 3; ++member)
        others.start([&] {
          for (unsigned i = 0; i < effort(2'000, 2); ++i) {
            auto one = ledger.reserve(4);
            expect(ledger.snapshot().charged_bytes <= 10, "never above the ceiling");
            if (one && i % 2 == 0) one->commit().release();
          }
        });
    }
    expect(ledger.snapshot().charged_bytes == 0 && !ledger.snapshot().corrupt, "the books add up");
  });
}

TEST(Generation, NumbersAreNeverZeroAndNeverRepeat) {
  run_on_side([](platform::host&) {
    generation source;
    std::vector<std::uint64_t> seen[3];
    {
      team others;
      for (auto& mine : seen)
        others.start([&] {
          for (unsigned i = 0; i < effort(10'000, 3); ++i) mine.push_back(source.issue());
        });
    }
    std::set<std::uint64_t> all;
    for (const auto& mine : seen)
      for (std::size_t i = 0; i < mine.size(); ++i) {
        expect(mine[i] != 0 && all.insert(mine[i]).second, "each number is new");
        expect(i == 0 || mine[i] > mine[i - 1], "a thread sees them rise");
      }
    expect(source.issued() == all.size(), "they are counted");
    generation later(7);
    expect(later.issue() == 7 && later.issue() == 8, "the first number may be chosen");
  });
}

TEST(Generation, StopsTheProcessWhenTheNumbersEnd) {
  const auto seen = stop_on_side([](platform::host&) {
    generation source(most - 1);
    source.issue();
  });
  EXPECT_TRUE(seen.stopped);
  EXPECT_NE(seen.said.find("used up"), std::string::npos) << seen.said;
}

}  // namespace holdfast::base_test
