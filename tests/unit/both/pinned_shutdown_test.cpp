// The end of a pool: every arena is in one number, nothing is freed that a device may reach, nothing is given back
// twice. The device answers late, wrongly or never, as each test wants it.
#include <tests/unit/both/pinned_support.hpp>

#include <gtest/gtest.h>

#include <string>

namespace holdfast::pinned_test {

namespace {

constexpr peer_id peer{5, 9};

remote_reference range(std::uint64_t length) {
  remote_reference there;
  there.length = length;
  there.incarnation = peer.incarnation;
  return there;
}

using answer = result<pinned::get_answer>;

std::uint64_t sum(const pinned::shutdown_report& report) {
  return report.arenas_confirmed + report.arenas_unconfirmed() + report.arenas_not_submitted;
}

}  // namespace

TEST(PinnedShutdown, ConfirmsEveryArenaAndRefusesWhatComesLater) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    at.must_alloc(16 * granule);
    at.must_alloc(40 * granule);
    const auto report = at.shutdown(long_time);
    expect(report.arenas_confirmed == 2 && sum(report) == 2 && report.clean(), "both are confirmed");
    expect(at.charged() == 0, "the books are empty");
    const auto late = at.alloc(1);
    expect(!late && late.error().code == error_code::shutting_down, "allocation is refused");
    const auto tried = at.memory->try_alloc(1);
    expect(!tried && tried.error().code == error_code::shutting_down, "the synchronous one too");
    const auto again = at.shutdown(long_time);
    expect(again.arenas_confirmed == 2, "a second caller gets the same report");
    expect(at.events(event_id::shutdown_started) == 1, "it runs once");
  });
}

TEST(PinnedShutdown, DoesNotWaitForBuffersThatCallersKeep) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    auto held = at.must_alloc(granule);
    held.bytes()[0] = std::byte{42};
    const auto report = at.shutdown(long_time);
    expect(report.arenas_confirmed == 1 && report.buffers_held == 1, "its arena was unmapped and settled");
    expect(held.bytes()[0] == std::byte{42}, "the buffer is ordinary memory now");
    expect(!held.remote(), "nobody is given its key any more");
    expect(at.events(event_id::block_freed) == 0, "its pages are still there");
    at.memory.reset();
    held.bytes()[1] = std::byte{43};
    held.reset();
    expect(at.events(event_id::block_freed) == 1 && at.events(event_id::block_leaked) == 0, "until it is dropped");
  });
}

TEST(PinnedShutdown, AnUnmapThatIsNotConfirmedKeepsPagesAndCharge) {
  run_on_side([](platform::host& host) {
    for (const auto verdict : {pinned::unmap_verdict::refused, pinned::unmap_verdict::unknown}) {
      small_pool at(host);
      at.must_alloc(granule);
      at.device->answer_unmaps(verdict);
      const auto report = at.shutdown(long_time);
      const bool refused = verdict == pinned::unmap_verdict::refused;
      expect(report.arenas_refused == (refused ? 1u : 0u) && report.arenas_unknown == (refused ? 0u : 1u) &&
                 sum(report) == 1,
             "counted by its reason");
      expect(!report.clean() && report.bytes_charged == 16 * granule, "the charge stays");
      expect(at.events(event_id::block_freed) == 0, "and so do the pages");
      const auto released = at.memory->release_unconfirmed(at.gone());
      expect(released && released->arenas == 1 && released->bytes == 16 * granule, "the witness settles it");
      expect(at.charged() == 0 && at.events(event_id::block_freed) == 1, "once");
    }
  });
}

TEST(PinnedShutdown, ReturnsByItsDeadlineWhenNobodyAnswersAndSettlesLateAnswersOnce) {
  run_on_side([](platform::host& host) {
    for (const bool witness_first : {false, true}) {
      small_pool at(host);
      at.must_alloc(granule);
      at.device->hold_unmaps(true);
      const auto deadline = at.around.in(short_time);
      const auto report = at.shutdown(short_time);
      expect(host.clock().now() < deadline + long_time, "it returns");
      expect(report.arenas_timed_out == 1 && sum(report) == 1, "submitted, not answered");
      expect(at.events(event_id::unmap_submitted) == 1, "once");
      if (witness_first) {
        const auto released = at.memory->release_unconfirmed(at.gone());
        expect(released && released->arenas == 1 && at.charged() == 0, "the witness settles it");
      }
      at.device->hold_unmaps(false);
      at.device->unmaps_answered.wait_for(1);
      expect(at.charged() == 0, "the charge is back");
      expect(at.events(event_id::arena_settled) == 1 && at.events(event_id::ledger_corrupt) == 0, "exactly once");
      expect(at.events(event_id::block_freed) == 1, "and the pages");
    }
  });
}

TEST(PinnedShutdown, NeverUnmapsUnderAFetchThatIsStillWriting) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    kept<answer> told;
    at.memory->async_get(peer, range(granule), at.must_alloc(granule), told.handler());
    at.device->gets_seen.wait_for(1);
    const auto report = at.shutdown(short_time);
    expect(report.arenas_not_submitted == 1 && report.transfers_outstanding == 1 && sum(report) == 1,
           "counted as not submitted");
    expect(at.device->unmaps_seen.value() == 0, "no unmap");
    expect(at.events(event_id::shutdown_outlasted) == 1, "and said so");
    at.device->end_get(pinned::get_outcome::ok);
    expect(told.wait().has_value(), "the fetch still ends with its buffer");
    told.wait()->destination.reset();
    expect(at.device->unmaps_seen.value() == 0, "what was not submitted is left to the witness");
    const auto released = at.memory->release_unconfirmed(at.gone());
    expect(released && released->arenas == 1 && at.charged() == 0, "which settles it");
  });
}

TEST(PinnedShutdown, UnmapsAsSoonAsTheLastFetchEnded) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    kept<answer> told;
    at.memory->async_get(peer, range(granule), at.must_alloc(granule), told.handler());
    auto other = at.must_alloc(40 * granule);
    at.device->gets_seen.wait_for(1);
    kept<result<pinned::shutdown_report>> ended;
    at.memory->async_shutdown(at.around.in(long_time), ended.handler());
    at.device->unmaps_answered.wait_for(1);
    expect(!ended.came(), "the other arena did not wait for it, the report does");
    at.device->end_get(pinned::get_outcome::ok);
    expect(ended.wait() && ended.wait()->arenas_confirmed == 2 && ended.wait()->clean(), "both are confirmed");
    expect(told.wait() && told.wait()->outcome, "and the fetch ended well");
  });
}

TEST(PinnedShutdown, NoFetchIsSubmittedAfterTheGateClosed) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    auto into = at.must_alloc(granule);
    at.shutdown(long_time);
    auto refused = at.memory->async_get(peer, range(granule), std::move(into), block);
    expect(refused && !refused->outcome && refused->outcome.error().code == error_code::shutting_down, "refused");
    expect(refused && refused->destination && at.device->gets_seen.value() == 0, "with the buffer, and untouched");
  });
}

TEST(PinnedShutdown, AMapThatAnswersAfterThePoolClosedIsGivenBack) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    at.device->hold_maps(true);
    kept<result<pinned::buffer>> pooled, dedicated;
    at.memory->async_alloc(granule, pooled.handler());
    at.memory->async_alloc(40 * granule, dedicated.handler());
    at.device->maps_seen.wait_for(2);
    const auto report = at.shutdown(short_time);
    expect(!pooled.wait() && pooled.wait().error().code == error_code::shutting_down, "its caller is told");
    expect(!dedicated.wait() && dedicated.wait().error().code == error_code::shutting_down, "both are");
    expect(report.maps_outstanding == 2 && report.tickets_abandoned != 0 && !report.clean(), "the report names them");
    expect(at.events(event_id::arena_published) == 0, "nothing was published");
    at.device->hold_maps(false);
    at.device->unmaps_answered.wait_for(2);
    expect(at.charged() == 0 && at.events(event_id::arena_published) == 0, "retired, unmapped, given back");
  });
}

TEST(PinnedShutdown, AMapThatAnswersAfterTheWitnessIsSettledOnArrival) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    at.device->hold_maps(true);
    kept<result<pinned::buffer>> gone;
    at.memory->async_alloc(granule, gone.handler());
    at.device->maps_seen.wait_for(1);
    at.shutdown(short_time);
    expect(at.memory->release_unconfirmed(at.gone()).has_value(), "there is a witness");
    at.device->hold_maps(false);
    while (at.events(event_id::arena_settled) == 0) platform::yield();
    while (at.events(event_id::block_freed) == 0) platform::yield();
    expect(at.charged() == 0 && at.device->unmaps_seen.value() == 0, "without a call to what is gone");
    expect(!gone.wait() && gone.wait().error().code == error_code::shutting_down, "and its caller was told");
  });
}

TEST(PinnedShutdown, TheWitnessHasToFit) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    at.must_alloc(1);
    const auto early = at.memory->release_unconfirmed(at.gone());
    expect(!early && early.error().code == error_code::invalid_state, "not before the shutdown ended");
    at.shutdown(long_time);
    auto backend = host_backend::create(at.log, incarnation + 1);
    auto stranger = (*backend)->close();
    const auto wrong = at.memory->release_unconfirmed(std::move(*stranger));
    expect(!wrong && wrong.error().code == error_code::invalid_argument, "not of another life");
  });
}

TEST(PinnedShutdown, DestroyedWithoutItThePoolCallsNoDeviceAndLeaks) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    auto held = at.must_alloc(granule);
    at.must_alloc(40 * granule);
    at.memory.reset();
    expect(at.device->unmaps_seen.value() == 0, "no device call");
    expect(at.events(event_id::block_freed) == 0, "no page was freed");
    held.bytes()[0] = std::byte{1};
    held.reset();
    // The record of the last map may still be on its way out, on the device's thread.
    while (at.events(event_id::block_leaked) < 2) platform::yield();
    expect(at.events(event_id::block_leaked) == 2, "each block leaks with its event");
    expect(at.charged() == 56 * granule, "and stays charged");
  });
}

TEST(PinnedShutdown, CancellingTheNotificationLetsTheShutdownGoOn) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    at.must_alloc(granule);
    at.device->hold_unmaps(true);
    kept<result<pinned::shutdown_report>> impatient;
    at.memory->async_shutdown(at.around.in(long_time), impatient.handler());
    at.device->unmaps_seen.wait_for(1);
    impatient.cancel();
    expect(!impatient.wait() && impatient.wait().error().code == error_code::cancelled, "told at once");
    at.device->hold_unmaps(false);
    expect(at.shutdown(long_time).clean(), "the next caller gets the report");
  });
}

TEST(PinnedSnapshot, SumsAreThoseOfItsLists) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    auto a = at.must_alloc(3 * granule);
    auto b = at.must_alloc(40 * granule);
    const auto seen = at.memory->snapshot();
    expect(seen.arenas.size() == 2 && seen.pool.arena_count == 2 && seen.pool.live_spans == 2, "two arenas, two spans");
    expect(seen.budget.registered_bytes == 56 * granule, "the books");
    expect(seen.arenas[0].free_bytes == 13 * granule, "free and granted are the arena");
    const std::string text = seen.to_json();
    expect(
        text.find("\"arena_count\": 2") != std::string::npos && text.find("\"dedicated\": true") != std::string::npos,
        "as text");
  });
}

}  // namespace holdfast::pinned_test
