// Giving back what nobody uses: by age, when asked, before the budget refuses; and unmaps that are refused or late. The
// device is the test's own, so that every answer comes when the test says so.
#include <tests/unit/both/pinned_support.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace holdfast::pinned_test {

namespace {

pinned::settings idle_settings(std::int64_t after_ns, std::uint64_t retain_granules) {
  pinned::settings options = small_settings();
  options.arena_reclaim_after_ns = after_ns;
  options.retain_arena_bytes = retain_granules * granule;
  return options;
}

constexpr std::int64_t soon_ns = 20'000'000;

/// Arenas of 16, 32 and 64 granules, in this order, and the buffers that fill them.
std::vector<pinned::buffer> three_arenas(small_pool& at) {
  std::vector<pinned::buffer> held;
  for (const std::uint64_t granules : {16, 32, 64})
    for (std::uint64_t cut = 0; cut < granules; cut += 16) held.push_back(at.must_alloc(16 * granule));
  expect(at.memory->arena_count() == 3 && at.charged() == 112 * granule, "three arenas");
  return held;
}

std::vector<std::uint64_t> sizes_in_service(small_pool& at) {
  std::vector<std::uint64_t> sizes;
  for (const auto& one : at.memory->snapshot().arenas) sizes.push_back(one.size_bytes / granule);
  std::ranges::sort(sizes);
  return sizes;
}

/// Nothing opens the gate: only time passes.
void pass_time(small_pool& at, platform::duration how_long) {
  gate closed_to_all(99, at.log);
  expect(!closed_to_all.drain_blocking(at.around.in(how_long)), "nobody closes it");
}

}  // namespace

TEST(PinnedReclaim, ADedicatedArenaGoesBackWithTheNextSweepThoughNoTimeIsSet) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    auto large = at.must_alloc(40 * granule);
    large.reset();
    at.device->unmaps_answered.wait_for(1);
    expect(at.charged() == 0, "its charge is back");
    expect(at.memory->arena_count() == 0, "and it is gone");
  });
}

TEST(PinnedReclaim, StagingThatComesAndGoesIsNeverRefused) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 64 * granule);
    for (int i = 0; i < 20; ++i) {
      auto large = at.alloc(40 * granule);
      expect(large.has_value(), "the one before has made room");
    }
    expect(at.device->maps_seen.value() == 20, "each has its own registration");
  });
}

TEST(PinnedReclaim, TheWarmFloorKeepsTheSmallestThatIsEnough) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 256 * granule, idle_settings(0, 16));
    three_arenas(at).clear();
    const pinned::reclaim_report swept = at.memory->reclaim_idle();
    expect(swept.arenas == 2 && swept.bytes == 96 * granule, "newest first: 64 and 32 go");
    expect(sizes_in_service(at) == std::vector<std::uint64_t>{16}, "16 stays");
  });
}

TEST(PinnedReclaim, AKeptArenaDoesNotEndTheWalk) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 256 * granule, idle_settings(0, 25));
    three_arenas(at).clear();
    expect(at.memory->reclaim_idle().arenas == 2, "64 goes, 32 would fall below the floor, 16 goes");
    expect(sizes_in_service(at) == std::vector<std::uint64_t>{32}, "32 stays");
  });
}

TEST(PinnedReclaim, OlderArenasGoAlthoughTheNewestIsBusy) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 256 * granule, idle_settings(0, 0));
    auto held = three_arenas(at);
    held.erase(held.begin(), held.end() - 1);
    expect(at.memory->reclaim_idle().arenas == 2, "16 and 32 go");
    expect(sizes_in_service(at) == std::vector<std::uint64_t>{64}, "the busy one stays");
  });
}

TEST(PinnedReclaim, NothingGoesBeforeItsTimeAndNothingPooledWithoutOne) {
  run_on_side([](platform::host& host) {
    small_pool never(host);
    never.must_alloc(granule).reset();
    expect(never.memory->reclaim_idle().arenas == 0, "no time is set");
    small_pool later(host, 256 * granule, idle_settings(3'600'000'000'000, 0));
    later.must_alloc(granule).reset();
    expect(later.memory->reclaim_idle().arenas == 0, "it fell empty just now");
    expect(never.memory->arena_count() == 1 && later.memory->arena_count() == 1, "both stay");
  });
}

TEST(PinnedReclaim, AnEmptyArenaGoesByItselfWhenItsTimeHasCome) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 256 * granule, idle_settings(soon_ns, 0));
    auto held = at.must_alloc(granule);
    const platform::time_point before = host.clock().now();
    held.reset();
    at.device->unmaps_seen.wait_for(1);
    expect((host.clock().now() - before).count() >= soon_ns, "not before it");
    at.device->unmaps_answered.wait_for(1);
    expect(at.charged() == 0, "and its charge returns");
  });
}

TEST(PinnedReclaim, AnAdoptedArenaThatNobodyEverUsedGoesToo) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 256 * granule, idle_settings(soon_ns, 0));
    at.device->hold_maps(true);
    kept<result<pinned::buffer>> gone;
    at.memory->async_alloc(granule, gone.handler());
    at.device->maps_seen.wait_for(1);
    gone.cancel();
    gone.wait();
    at.device->hold_maps(false);
    at.device->unmaps_answered.wait_for(1);
    expect(at.charged() == 0, "its clock ran from its adoption on");
  });
}

TEST(PinnedReclaim, ThePoolGrowsAgainInThePlaceOfWhatWentBack) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 256 * granule, idle_settings(0, 0));
    for (int i = 1; i <= 5; ++i) {
      std::vector<pinned::buffer> held;
      for (int n = 0; n < 16; ++n) held.push_back(at.must_alloc(granule));
      expect(at.memory->arena_count() == 1, "one arena holds sixteen granules");
      held.clear();
      expect(at.memory->reclaim_idle().arenas == 1, "and goes when it is empty");
      at.device->unmaps_answered.wait_for(static_cast<unsigned>(i));
    }
    expect(at.charged() == 0 && at.events(event_id::block_freed) == 5, "its pages are freed each time");
  });
}

TEST(PinnedReclaim, AMapThatFailsInTheVacantPlaceOfAnotherArenaFreesItsPages) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 256 * granule, idle_settings(0, 0));
    at.must_alloc(granule).reset();
    at.memory->reclaim_idle();
    at.device->unmaps_answered.wait_for(1);
    at.device->fail_maps(error_code::backend);
    for (int i = 0; i < 2; ++i) expect(!at.alloc(granule), "the device refuses");
    expect(at.events(event_id::block_allocated) == 3 && at.events(event_id::block_freed) == 3, "no page is lost");
    at.device->fail_maps({});
    expect(at.alloc(granule).has_value(), "and the place serves again");
  });
}

TEST(PinnedReclaim, ARefusedUnmapIsAskedForAgainAndThenConfirmed) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 256 * granule, idle_settings(0, 0));
    at.device->answer_unmaps(pinned::unmap_verdict::refused);
    at.must_alloc(granule).reset();
    at.memory->reclaim_idle();
    at.device->unmaps_answered.wait_for(2);
    expect(at.charged() == 16 * granule, "refused means: still registered");
    at.device->answer_unmaps(pinned::unmap_verdict::confirmed);
    at.device->unmaps_answered.wait_for(3);
    expect(at.charged() == 0, "confirmed means: gone");
    expect(at.events(event_id::arena_settled) == 1 && at.events(event_id::arena_unconfirmed) == 0, "settled, once");
  });
}

TEST(PinnedReclaim, AnUnmapThatIsRefusedForEverIsAskedForABoundedNumberOfTimes) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 256 * granule, idle_settings(0, 0));
    at.device->answer_unmaps(pinned::unmap_verdict::refused);
    at.must_alloc(granule).reset();
    at.memory->reclaim_idle();
    at.device->unmaps_answered.wait_for(4);
    pass_time(at, 500 * millisecond);
    expect(at.device->unmaps_seen.value() == 4, "once, and three times again");
    expect(at.events(event_id::arena_unconfirmed) == 1, "then it is reported, once");
    const auto report = at.shutdown(long_time);
    expect(report.arenas_refused == 1 && at.device->unmaps_seen.value() == 4, "the shutdown does not ask a fifth time");
    expect(at.charged() == 16 * granule, "its charge stays");
    expect(at.memory->release_unconfirmed(at.gone()).has_value() && at.charged() == 0, "until a witness");
  });
}

TEST(PinnedReclaim, AShutdownAsksAgainForWhatWasRefusedWhileItsDeadlineLasts) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    at.device->answer_unmaps(pinned::unmap_verdict::refused);
    auto held = at.must_alloc(granule);
    kept<result<pinned::shutdown_report>> ended;
    at.memory->async_shutdown(at.around.in(long_time), ended.handler());
    at.device->unmaps_answered.wait_for(1);
    at.device->answer_unmaps(pinned::unmap_verdict::confirmed);
    expect(ended.wait() && ended.wait()->arenas_confirmed == 1 && ended.wait()->arenas_refused == 0,
           "confirmed in the end");
    expect(at.charged() == 0, "and given back");
  });
}

TEST(PinnedReclaim, AnUnmapWithoutAnswerIsReportedOnceAndALateAnswerSettlesIt) {
  run_on_side([](platform::host& host) {
    pinned::settings options = idle_settings(0, 0);
    options.unmap_timeout_ns = soon_ns;
    small_pool at(host, 256 * granule, options);
    at.device->hold_unmaps(true);
    at.must_alloc(granule).reset();
    at.memory->reclaim_idle();
    pass_time(at, 500 * millisecond);
    expect(at.events(event_id::arena_unconfirmed) == 1, "reported after its bound, once");
    expect(at.charged() == 16 * granule, "silence proves nothing");
    at.device->hold_unmaps(false);
    at.device->unmaps_answered.wait_for(1);
    expect(at.charged() == 0 && at.events(event_id::arena_unconfirmed) == 1, "the answer does, late as it is");
  });
}

TEST(PinnedReclaim, BeforeTheBudgetRefusesWhatNobodyUsesIsGivenBack) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 64 * granule);
    at.must_alloc(granule).reset();
    auto large = at.alloc(60 * granule);
    expect(large.has_value(), "the warm arena made room");
    expect(at.charged() == 60 * granule, "and only the new one is charged");
    const auto second = at.alloc(granule);
    expect(!second && second.error().code == error_code::budget_exceeded, "a buffer that is held makes none");
  });
}

TEST(PinnedReclaim, WithPressureReclaimOffTheBudgetRefusesAtOnce) {
  run_on_side([](platform::host& host) {
    pinned::settings options = small_settings();
    options.reclaim_on_pressure = false;
    small_pool at(host, 64 * granule, options);
    at.must_alloc(granule).reset();
    const auto large = at.alloc(60 * granule);
    expect(!large && large.error().code == error_code::budget_exceeded, "refused");
    expect(at.device->unmaps_seen.value() == 0 && at.memory->arena_count() == 1, "and the warm arena stays");
  });
}

TEST(PinnedReclaim, PressureLeavesTimeAndFloorInForceForLaterSweeps) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 64 * granule, idle_settings(3'600'000'000'000, 64));
    at.must_alloc(granule).reset();
    at.must_alloc(60 * granule).reset();
    at.device->unmaps_answered.wait_for(2);
    at.must_alloc(granule).reset();
    expect(at.memory->reclaim_idle().arenas == 0 && at.memory->arena_count() == 1, "the new warm arena stays");
  });
}

TEST(PinnedReclaim, WhoWaitsUnderPressureIsRefusedWhenTheAnswerMakesNoRoom) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 64 * granule);
    at.device->answer_unmaps(pinned::unmap_verdict::unknown);
    at.must_alloc(granule).reset();
    const auto large = at.alloc(60 * granule);
    expect(!large && large.error().code == error_code::budget_exceeded,
           "an unmap that is not confirmed keeps its charge");
    expect(at.charged() == 16 * granule, "as before");
  });
}

TEST(PinnedReclaim, WhoWaitsUnderPressureMayGiveUp) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 64 * granule);
    at.device->hold_unmaps(true);
    at.must_alloc(granule).reset();
    kept<result<pinned::buffer>> gone;
    at.memory->async_alloc(60 * granule, gone.handler());
    at.device->unmaps_seen.wait_for(1);
    gone.cancel();
    expect(!gone.wait() && gone.wait().error().code == error_code::cancelled, "told at once");
    at.device->hold_unmaps(false);
    at.device->unmaps_answered.wait_for(1);
    expect(at.charged() == 0, "what was given back stays given back");
  });
}

TEST(PinnedReclaim, AShutdownDoesNotWaitForWhoWaitsUnderPressure) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 64 * granule);
    at.device->hold_unmaps(true);
    at.must_alloc(granule).reset();
    kept<result<pinned::buffer>> waiting;
    at.memory->async_alloc(60 * granule, waiting.handler());
    at.device->unmaps_seen.wait_for(1);
    const auto report = at.shutdown(short_time);
    expect(!waiting.wait() && waiting.wait().error().code == error_code::shutting_down, "it is refused");
    expect(report.tickets_abandoned == 0 && report.arenas_timed_out == 1, "and was not waited for; the unmap was");
    at.device->hold_unmaps(false);
  });
}

TEST(PinnedReclaim, AScrubbedBufferLeavesNothingForTheNextTenant) {
  run_on_side([](platform::host& host) {
    pinned::settings options = small_settings();
    options.scrub_on_free = true;
    small_pool at(host, 256 * granule, options);
    const std::byte* before = nullptr;
    for (int round = 0; round < 2; ++round) {
      auto one = at.must_alloc(granule);
      const auto bytes = one.bytes();
      expect(round == 0 || bytes.data() == before, "the next tenant of the same granule");
      before = bytes.data();
      expect(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; }), "zeros");
      std::memset(bytes.data(), 0x77, bytes.size());
    }
  });
}

TEST(PinnedReclaim, WrongSettingsAreNamed) {
  const auto named = [](auto change, std::string_view option) {
    pinned::settings options;
    change(options);
    const auto valid = pinned::validate(options);
    return !valid && std::string_view(valid.error().words).starts_with(option);
  };
  EXPECT_TRUE(named([](auto& o) { o.arena_reclaim_after_ns = -1; }, "arena_reclaim_after_ns"));
  EXPECT_TRUE(named([](auto& o) { o.unmap_timeout_ns = 0; }, "unmap_timeout_ns"));
  EXPECT_TRUE(named([](auto& o) { o.unmap_retry_max = 17; }, "unmap_retry_max"));
  EXPECT_TRUE(named([](auto& o) { o.initial_arena_bytes = 0; }, "initial_arena_bytes"));
}

}  // namespace holdfast::pinned_test
