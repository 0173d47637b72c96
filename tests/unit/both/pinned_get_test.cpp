// Fetching into a buffer: who has the bytes when, and who may use the granules again. The test plays the device and
// ends each fetch in one of its ways.
#include <tests/unit/both/pinned_support.hpp>

#include <gtest/gtest.h>

namespace holdfast::pinned_test {

namespace {

constexpr peer_id peer{5, 9};

remote_reference range(std::uint64_t length) {
  remote_reference there;
  there.address = 0x1000;
  there.length = length;
  there.generation = 3;
  there.incarnation = peer.incarnation;
  return there;
}

using answer = result<pinned::get_answer>;

/// A fetch that is under way.
void start(small_pool& at, kept<answer>& told, pinned::buffer into) {
  const std::uint64_t bytes = into.size();
  const std::uint64_t before = at.device->gets_seen.value();
  at.memory->async_get(peer, range(bytes), std::move(into), told.handler());
  at.device->gets_seen.wait_for(before + 1);
}

}  // namespace

TEST(PinnedGet, EndsWithTheBufferAndItsBytes) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    kept<answer> told;
    start(at, told, at.must_alloc(100));
    const pinned::get_request& asked = at.device->oldest_get();
    expect(asked.peer == peer && asked.bytes == 100 && asked.destination_region != 0,
           "the request says what and where");
    expect(at.memory->in_flight_transfers() == 1, "it is held");
    at.device->end_get(pinned::get_outcome::ok);
    auto& ended = told.wait();
    expect(ended && ended->outcome && ended->destination.size() == 100, "the buffer is back");
    expect(ended && ended->destination.bytes()[99] == std::byte{0x5a}, "with the bytes");
    expect(at.memory->in_flight_transfers() == 0, "the hold was dropped before the waiter was told");
    ended->destination.reset();
    expect(at.shutdown(long_time).clean(), "nothing is left");
  });
}

TEST(PinnedGet, AFailureGivesTheBufferBackWithItsError) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    kept<answer> told;
    start(at, told, at.must_alloc(100));
    at.device->end_get(pinned::get_outcome::failed, fail(error_code::transfer_failed, "test.get").error());
    auto& ended = told.wait();
    expect(ended && !ended->outcome && ended->outcome.error().code == error_code::transfer_failed, "the error");
    expect(ended && ended->destination.size() == 100, "and the buffer");
  });
}

TEST(PinnedGet, ARefusalTouchesNothingAndGivesTheBufferBack) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    const auto refused = [&at](const peer_id& from, const remote_reference& what, error_code expected) {
      auto ended = at.memory->async_get(from, what, at.must_alloc(100), block);
      expect(ended && !ended->outcome && ended->outcome.error().code == expected, name_of(expected));
      expect(ended && ended->destination.size() == 100, "the buffer is back");
    };
    refused(peer, range(0), error_code::out_of_range);
    refused(peer, range(101), error_code::out_of_range);
    remote_reference wraps = range(100);
    wraps.address = UINT64_MAX - 10;
    refused(peer, wraps, error_code::out_of_range);
    refused({peer.worker_id, peer.incarnation + 1}, range(100), error_code::stale_key);
    expect(at.device->gets_seen.value() == 0, "nothing was submitted");
    at.device->refuse_gets(error_code::unreachable);
    refused(peer, range(100), error_code::unreachable);
    expect(at.memory->in_flight_transfers() == 0 && at.memory->live_spans() == 0, "nothing is held");
    expect(at.shutdown(long_time).clean(), "nothing is left");
  });
}

TEST(PinnedGet, ABackendWithoutFetchesAnswersNotConfigured) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    at.memory.reset();
    at.device->capabilities().get_works = false;
    at.memory = std::make_unique<pinned::memory>(
        *pinned::memory::create(2, host.pages(), at.environment, at.ledger, *at.device, small_settings()));
    auto ended = at.memory->async_get(peer, range(1), at.must_alloc(1), block);
    expect(ended && !ended->outcome && ended->outcome.error().code == error_code::not_configured, "not configured");
    ended->destination.reset();
    expect(at.shutdown(long_time).clean(), "nothing is left");
  });
}

TEST(PinnedGet, ACancelledFetchKeepsItsGranulesUntilItEnds) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    auto into = at.must_alloc(16 * granule);
    std::byte* const written = into.bytes().data();
    kept<answer> told;
    start(at, told, std::move(into));
    told.cancel();
    expect(!told.wait() && told.wait().error().code == error_code::cancelled, "the caller is told at once");
    const auto refused = at.memory->try_alloc(granule);
    expect(!refused && refused.error().code == error_code::busy, "the device may still write: nothing is free");
    at.device->end_get(pinned::get_outcome::ok);
    // The granules come back on the executor, not on the device's thread.
    auto again = at.memory->try_alloc(16 * granule);
    while (!again) {
      platform::yield();
      again = at.memory->try_alloc(16 * granule);
    }
    expect(again->bytes().data() == written, "the same granules, once the device is done");
  });
}

TEST(PinnedGet, AnUnknownFateKeepsTheBytesForGood) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    kept<answer> told;
    start(at, told, at.must_alloc(16 * granule));
    at.device->end_get(pinned::get_outcome::indeterminate);
    expect(!told.wait() && told.wait().error().code == error_code::indeterminate, "the waiter is told, without buffer");
    const auto refused = at.memory->try_alloc(granule);
    expect(!refused && refused.error().code == error_code::busy, "the granules are never granted");
    const auto report = at.shutdown(short_time);
    expect(report.arenas_not_submitted == 1 && report.spans_quarantined == 1, "no unmap under a possible write");
    expect(at.device->unmaps_seen.value() == 0, "none was submitted");
    const auto released = at.memory->release_unconfirmed(at.gone());
    expect(released && released->arenas == 1 && released->spans_quarantined == 0, "the worker's end is the fence");
    expect(at.charged() == 0, "the charge is back");
    expect(at.events(event_id::block_freed) == 1 && at.events(event_id::block_leaked) == 0, "and the pages");
  });
}

TEST(PinnedGet, AnOrphanIsDischargedByItsOwnLateCompletion) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    kept<answer> told;
    start(at, told, at.must_alloc(16 * granule));
    at.device->oldest_get().orphaned();
    expect(!told.wait() && told.wait().error().code == error_code::indeterminate, "the waiter is told once");
    expect(at.events(event_id::span_quarantined) == 1, "the span is in quarantine");
    expect(!at.memory->try_alloc(granule), "and not granted");
    at.device->end_get(pinned::get_outcome::failed, fail(error_code::transfer_failed, "test.get").error());
    expect(at.events(event_id::span_discharged) == 1, "its own completion is the fence");
    auto again = at.memory->try_alloc(granule);
    while (!again) {
      platform::yield();
      again = at.memory->try_alloc(granule);
    }
    again->reset();
    expect(at.shutdown(long_time).clean(), "nothing is left");
  });
}

TEST(PinnedGet, CancellingAndEndingAtOnceTellsOnceAndLosesNothing) {
  run_on_side([](platform::host& host) {
    small_pool at(host);
    for (unsigned i = 0; i < conformance::effort(200, 2); ++i) {
      kept<answer> told;
      start(at, told, at.must_alloc(granule));
      {
        conformance::team threads;
        threads.start([&told] { told.cancel(); });
        threads.start([&at] { at.device->end_get(pinned::get_outcome::ok); });
      }
      auto& ended = told.wait();
      expect(ended ? ended->outcome.has_value() : ended.error().code == error_code::cancelled, "one of the two");
    }
    expect(at.shutdown(long_time).clean(), "nothing is left");
  });
}

}  // namespace holdfast::pinned_test
