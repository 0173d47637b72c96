// Allocation: what is granted, what is registered for it, and what is left after a refusal or a cancellation. The
// device is the test's own, so that every answer comes when the test says so.
#include <tests/unit/both/pinned_support.hpp>

#include <gtest/gtest.h>

#include <string>

namespace holdfast::pinned_test {

namespace {

bool overlap(const pinned::buffer& a, const pinned::buffer& b) {
  const auto end = [](const pinned::buffer& one) { return one.bytes().data() + one.size(); };
  return a.bytes().data() < end(b) && b.bytes().data() < end(a);
}

}  // namespace

TEST(PinnedAllocation, OneByteRegistersOneArenaAndIsOneByteLong) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    auto one = at.must_alloc(1);
    expect(one.size() == 1 && one.bytes().size() == 1, "size is what was asked for");
    expect(at.charged() == 16 * granule, "the arena is charged whole");
    expect(at.device->maps_seen.value() == 1, "one registration");
    auto two = at.must_alloc(granule + 1);
    expect(at.device->maps_seen.value() == 1, "the second request needs none");
    expect(!overlap(one, two), "two buffers never overlap");
    const auto named = two.remote();
    expect(named && named->length == granule + 1 && named->incarnation == incarnation, "the reference names the bytes");
  });
}

TEST(PinnedAllocation, AnArenaOfNGranulesHoldsNBuffersAndIsWholeAgainAfterwards) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    for (int again = 0; again < 3; ++again) {
      std::vector<pinned::buffer> held;
      for (int i = 0; i < 16; ++i) held.push_back(at.must_alloc(granule));
      expect(at.device->maps_seen.value() == 1, "sixteen granules are sixteen buffers");
      for (std::size_t i = 0; i < held.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) expect(!overlap(held[i], held[j]), "no two overlap");
      auto full = at.memory->try_alloc(1);
      expect(!full && full.error().code == error_code::busy, "a full pool is busy, and stays as it is");
      held.clear();
      auto whole = at.memory->try_alloc(16 * granule);
      expect(whole.has_value(), "given back, the arena is one range again");
    }
  });
}

TEST(PinnedAllocation, GrowthDoublesUpToTheMaximum) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    std::vector<pinned::buffer> held;
    for (int i = 0; i < 16 + 32 + 64 + 64; ++i) held.push_back(at.must_alloc(granule));
    expect(at.device->maps_seen.value() == 4, "16, 32, 64 and 64 granules");
    expect(at.charged() == (16 + 32 + 64 + 64) * granule, "each arena is charged");
  });
}

TEST(PinnedAllocation, LargeRequestsGetAnArenaOfTheirOwnThatNobodyElseIsServedFrom) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    auto large = at.must_alloc(32 * granule + 1);
    expect(at.charged() == 33 * granule, "exactly sized");
    auto refused = at.memory->try_alloc(1);
    expect(!refused && refused.error().code == error_code::busy, "it is not searched");
    auto own = at.memory->async_alloc(1, pinned::alloc_options{.own_arena = true}, block);
    expect(own && at.charged() == 34 * granule, "on request a small buffer gets its own too");
    large.reset();
    auto small = at.must_alloc(1);
    expect(at.device->maps_seen.value() == 3, "an empty dedicated arena is not used again");
  });
}

TEST(PinnedAllocation, TryAllocNeverCallsTheDevice) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    const auto cold = at.memory->try_alloc(granule);
    expect(!cold && cold.error().code == error_code::busy, "a cold pool has nothing");
    const auto zero = at.memory->try_alloc(0);
    expect(!zero && zero.error().code == error_code::out_of_range, "zero bytes are refused");
    const auto large = at.memory->try_alloc(32 * granule);
    expect(!large && large.error().code == error_code::out_of_range, "what needs its own arena is refused");
    expect(at.device->maps_seen.value() == 0, "nothing was registered");
  });
}

TEST(PinnedAllocation, RefusalsNameTheirNumbersAndLeaveNothing) {
  run_on_side([](platform::host& host) {
    small_pool at(host, 20 * granule);
    auto first = at.must_alloc(16 * granule);
    const auto budget = at.alloc(granule);
    expect(!budget && budget.error().code == error_code::budget_exceeded, "the second arena does not fit");
    expect(!budget && budget.error().numbers[0] == 32 * granule && budget.error().numbers[1] == 16 * granule &&
               budget.error().numbers[2] == 20 * granule,
           "requested, registered, budget");
    const auto zero = at.alloc(0);
    expect(!zero && zero.error().code == error_code::out_of_range, "zero");
    const auto huge = at.alloc(UINT64_MAX);
    expect(!huge && huge.error().code == error_code::out_of_range, "more than any arena");
    expect(at.charged() == 16 * granule, "nothing is left behind");
    first.reset();
    expect(at.alloc(granule).has_value(), "and the pool goes on");
  });
}

TEST(PinnedAllocation, AFailedMapIsTheCallersErrorAndFreesItsPages) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    at.device->fail_maps(error_code::backend);
    for (const std::uint64_t bytes : {granule, 40 * granule}) {
      const auto refused = at.alloc(bytes);
      expect(!refused && refused.error().code == error_code::backend, "the device's error");
      expect(at.charged() == 0, "the claim is back before the caller hears of it");
    }
    expect(at.events(event_id::block_freed) == 2 && at.events(event_id::block_leaked) == 0, "pages are freed");
    at.device->fail_maps({});
    expect(at.alloc(granule).has_value(), "the next one works");
  });
}

TEST(PinnedAllocation, ADeviceThatRegistersLessThanAskedIsNotUsedAndIsUndone) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    at.device->register_less(true);
    const auto refused = at.alloc(granule);
    expect(!refused && refused.error().code == error_code::backend, "nobody gets it");
    at.device->unmaps_answered.wait_for(1);
    const auto report = at.shutdown(long_time);
    expect(report.clean() && at.charged() == 0, "the registration was given back");
  });
}

TEST(PinnedAllocation, TwoMissesAtOnceRegisterOneArena) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    at.device->hold_maps(true);
    kept<result<pinned::buffer>> first, second, third;
    at.memory->async_alloc(4 * granule, first.handler());
    at.memory->async_alloc(4 * granule, second.handler());
    at.memory->async_alloc(4 * granule, third.handler());
    at.device->maps_seen.wait_for(1);
    at.device->hold_maps(false);
    expect(first.wait() && second.wait() && third.wait(), "all three are served");
    expect(at.device->maps_seen.value() == 1, "from one arena");
    expect(!overlap(*first.wait(), *second.wait()) && !overlap(*second.wait(), *third.wait()) &&
               !overlap(*first.wait(), *third.wait()),
           "without overlap");
  });
}

TEST(PinnedAllocation, WhoDoesNotFitIntoTheNewArenaGetsTheNextOne) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    at.device->hold_maps(true);
    kept<result<pinned::buffer>> first, second, third;
    at.memory->async_alloc(12 * granule, first.handler());
    at.memory->async_alloc(12 * granule, second.handler());
    at.memory->async_alloc(4 * granule, third.handler());
    at.device->maps_seen.wait_for(1);
    at.device->hold_maps(false);
    expect(first.wait() && second.wait() && third.wait(), "all three are served");
    expect(at.device->maps_seen.value() == 2, "from two arenas");
  });
}

TEST(PinnedAllocation, ACancelledGrowthIsAdoptedAndServesTheNext) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    at.device->hold_maps(true);
    kept<result<pinned::buffer>> gone;
    at.memory->async_alloc(granule, gone.handler());
    at.device->maps_seen.wait_for(1);
    gone.cancel();
    expect(!gone.wait() && gone.wait().error().code == error_code::cancelled, "the caller is told at once");
    expect(at.charged() == 16 * granule, "the claim stays with the map");
    kept<result<pinned::buffer>> next;
    at.memory->async_alloc(granule, next.handler());
    at.device->hold_maps(false);
    expect(next.wait().has_value(), "the next one is served");
    expect(at.device->maps_seen.value() == 1, "from the arena that was under way");
    expect(at.charged() == 16 * granule, "charged once");
  });
}

TEST(PinnedAllocation, AnArenaThatNobodyWaitsForAnyMoreIsPublishedEmpty) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    at.device->hold_maps(true);
    kept<result<pinned::buffer>> gone;
    at.memory->async_alloc(granule, gone.handler());
    at.device->maps_seen.wait_for(1);
    gone.cancel();
    gone.wait();
    at.device->hold_maps(false);
    while (at.events(event_id::arena_published) == 0) platform::yield();
    auto whole = at.alloc(16 * granule);
    expect(whole && at.device->maps_seen.value() == 1, "whole");
    bool adopted = false;
    for (const auto& record : at.log.copy_recent())
      if (record.id == event_id::arena_published) adopted = record.fields[5] == 1;
    expect(adopted, "and counted as adopted");
  });
}

TEST(PinnedAllocation, ACancelledDedicatedArenaIsGivenBack) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    at.device->hold_maps(true);
    kept<result<pinned::buffer>> gone;
    at.memory->async_alloc(40 * granule, gone.handler());
    at.device->maps_seen.wait_for(1);
    gone.cancel();
    expect(!gone.wait() && gone.wait().error().code == error_code::cancelled, "the caller is told at once");
    expect(at.charged() == 40 * granule, "the claim stays with the map");
    at.device->hold_maps(false);
    at.device->unmaps_answered.wait_for(1);
    expect(at.shutdown(long_time).clean() && at.charged() == 0, "and returns when the unmap is confirmed");
    expect(at.events(event_id::block_freed) == 1 && at.events(event_id::block_leaked) == 0, "pages are freed");
  });
}

TEST(PinnedAllocation, ACancelledCallerLeavesTheLineAndTheOthersAreServed) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    at.device->hold_maps(true);
    kept<result<pinned::buffer>> first, second;
    at.memory->async_alloc(16 * granule, first.handler());
    at.memory->async_alloc(16 * granule, second.handler());
    at.device->maps_seen.wait_for(1);
    first.cancel();
    first.wait();
    at.device->hold_maps(false);
    expect(second.wait().has_value() && at.device->maps_seen.value() == 1, "the second gets what the first began");
  });
}

TEST(PinnedAllocation, ThreadsAllocateAndFreeWithoutOverlap) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    {
      conformance::team threads;
      for (unsigned char mark = 1; mark <= 3; ++mark)
        threads.start([&at, mark] {
          for (unsigned i = 0; i < conformance::effort(300, 3); ++i) {
            auto mine = at.memory->async_alloc((1 + (i * mark) % 7) * granule, block);
            expect(mine.has_value(), "there is room for three");
            if (!mine) return;
            std::memset(mine->bytes().data(), mark, mine->size());
            platform::yield();
            bool same = true;
            for (const std::byte b : mine->bytes()) same = same && b == std::byte{mark};
            expect(same, "nobody else wrote into it");
          }
        });
    }
    const auto report = at.shutdown(long_time);
    expect(report.clean() && at.charged() == 0, "everything went back");
  });
}

TEST(PinnedSettings, AWrongOptionIsNamedWithItsValueAndRange) {
  pinned::settings options = small_settings();
  options.max_arena_bytes = granule;
  const auto refused = pinned::validate(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::out_of_range);
  const std::string text = refused.error().words;
  EXPECT_NE(text.find("max_arena_bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("4096"), std::string::npos) << text;
  EXPECT_NE(text.find("65536"), std::string::npos) << text;
  options = small_settings();
  options.dedicated_arena_min = 0;
  EXPECT_FALSE(pinned::validate(options));
  options = small_settings();
  options.initial_arena_bytes = 0;
  EXPECT_FALSE(pinned::validate(options));
  EXPECT_TRUE(pinned::validate(pinned::settings{}));
}

TEST(PinnedSettings, GrowthTargetsStopAtTheMaximumAndNeverReachZero) {
  pinned::settings options;
  options.initial_arena_bytes = std::uint64_t{1} << 40;
  options.max_arena_bytes = pinned::granules_max * granule;
  for (std::uint32_t n = 0; n < 200; ++n) {
    const std::uint64_t target = pinned::growth_target(options, n, granule, 4096);
    EXPECT_GE(target, options.initial_arena_bytes);
    EXPECT_LE(target, options.max_arena_bytes);
  }
  EXPECT_EQ(pinned::growth_target(options, 0, granule, 4096), options.initial_arena_bytes);
  EXPECT_EQ(pinned::growth_target(options, 199, granule, 4096), options.max_arena_bytes);
  EXPECT_EQ(pinned::growth_target(small_settings(), 0, 20 * granule, 65536), 20 * granule + 12 * granule);
}

}  // namespace holdfast::pinned_test
