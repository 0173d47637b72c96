// The runtime over the host device: birth, allocation, the orders of its end, and what is left when there is none. The
// device's system calls are the test's, so that no privilege is needed and a refusal can be had.
#include <tests/unit/both/pinned_support.hpp>

#include <holdfast/runtime/host_device.hpp>
#include <holdfast/runtime/runtime.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <string>

namespace holdfast::pinned_test {

namespace {

int lock_nothing(const void*, std::size_t) noexcept { return 0; }
int refuse(const void*, std::size_t) noexcept { return 12; }
std::uint64_t eight_granules() noexcept { return 8 * granule; }

constexpr memory_calls willing{lock_nothing, lock_nothing, eight_granules};
constexpr memory_calls unwilling{refuse, refuse, eight_granules};
constexpr memory_calls sticky{lock_nothing, refuse, eight_granules};

// Not of the platform: counting is no scheduling point.
std::atomic<int> locked, unlocked;
int count_lock(const void*, std::size_t) noexcept {
  ++locked;
  return 0;
}
int count_unlock(const void*, std::size_t) noexcept {
  ++unlocked;
  return 0;
}
constexpr memory_calls counted{count_lock, count_unlock, eight_granules};

runtime_options small_options() {
  runtime_options options;
  options.pinned = small_settings();
  options.recorded_events = 1 << 12;
  options.recorded_level = event_level::trace;
  return options;
}

std::uint64_t events(runtime& rt, event_id id) {
  std::uint64_t count = 0;
  for (const auto& record : rt.events().copy_recent()) count += record.id == id;
  return count;
}

/// The host device, which begins its end when the test says.
class late_device final : public device {
 public:
  explicit late_device(std::unique_ptr<device> behind) : behind_(std::move(behind)) {}
  pinned::backend& backend() noexcept override { return behind_->backend(); }
  void begin_end(platform::time_point deadline, std::move_only_function<void(result<device_end>)> told) override {
    deadline_ = deadline;
    told_ = std::move(told);
    asked.add();
  }
  void end_now() {
    asked.wait_for(1);
    behind_->begin_end(deadline_, std::move(told_));
  }

  counter asked;

 private:
  const std::unique_ptr<device> behind_;
  platform::time_point deadline_;
  std::move_only_function<void(result<device_end>)> told_;
};

}  // namespace

TEST(Runtime, LivesAndEndsWithNothingLeft) {
  run_on_side([](platform::host& host) {
    conformance::keep_time_calm();
    auto made = runtime::create(host, small_options(), host_device(willing));
    expect(made.has_value(), "a runtime can be made");
    runtime& rt = *made;
    {
      auto buffer = rt.pinned().async_alloc(100, block);
      expect(buffer && buffer->size() == 100, "it allocates");
      expect(rt.pinned().registered_bytes() == 16 * granule, "from its budget");
      const auto named = buffer->remote();
      expect(named && named->incarnation == rt.incarnation() && rt.incarnation() != 0, "in its own name");
    }
    expect(rt.peers() == nullptr, "the host device has no peers");
    const auto report = rt.async_shutdown(rt.now() + long_time, block);
    expect(report && report->clean() && report->witnessed && report->pinned.arenas_confirmed == 1, "a clean end");
    expect(report && report->to_json().find("\"clean\": true") != std::string::npos, "as text");
    const auto again = rt.async_shutdown(rt.now() + long_time, block);
    expect(again && again->clean() && events(rt, event_id::witness_issued) == 1,
           "the second call gets the same report");
    expect(events(rt, event_id::block_freed) == 1 && events(rt, event_id::block_leaked) == 0, "the pages went back");
  });
}

TEST(Runtime, TheMachinesLimitIsAnErrorWithItsNumbers) {
  run_on_side([](platform::host& host) {
    auto made = runtime::create(host, small_options(), host_device(unwilling));
    expect(made.has_value(), "a runtime can be made");
    const auto refused = made->pinned().async_alloc(100, block);
    expect(!refused && refused.error().code == error_code::limit_exceeded, "the limit is met");
    expect(!refused && refused.error().numbers[0] == 16 * granule && refused.error().numbers[1] == 8 * granule,
           "need and limit");
    expect(made->pinned().registered_bytes() == 0, "nothing is left");
    const auto report = made->async_shutdown(made->now() + long_time, block);
    expect(report && report->clean(), "a clean end");
  });
}

TEST(Runtime, WhatTheDriverWouldNotGiveBackIsSettledByTheWitness) {
  run_on_side([](platform::host& host) {
    conformance::keep_time_calm();
    auto made = runtime::create(host, small_options(), host_device(sticky));
    expect(made.has_value(), "a runtime can be made");
    expect(made->pinned().async_alloc(100, block).has_value(), "it allocates");
    const auto report = made->async_shutdown(made->now() + long_time, block);
    expect(report && report->pinned.arenas_unknown == 1 && report->pinned.bytes_charged == 16 * granule,
           "the unmap was not confirmed");
    expect(report && report->released.arenas == 1 && report->bytes_registered == 0 && report->clean(),
           "the witness settled it");
  });
}

TEST(Runtime, DestroyedWithoutShutdownItCallsNoDriverAndLeaks) {
  run_on_side([](platform::host& host) {
    locked = unlocked = 0;
    pinned::buffer held;
    {
      auto made = runtime::create(host, small_options(), host_device(counted));
      expect(made.has_value(), "a runtime can be made");
      auto got = made->pinned().async_alloc(granule, block);
      expect(got && locked == 1, "it allocates from an arena that is registered");
      held = std::move(*got);
    }
    held.bytes()[0] = std::byte{7};
    expect(held.bytes()[0] == std::byte{7}, "the pages are still there");
    held.reset();
    host.stop();
    expect(unlocked == 0, "nothing was unregistered, and so nothing is freed");
  });
}

TEST(Runtime, WhoJoinsALongerShutdownIsToldByHisOwnDeadline) {
  run_on_side([](platform::host& host) {
    conformance::keep_time_calm();
    late_device* late = nullptr;
    auto made = runtime::create(
        host, small_options(),
        [&late](platform::host& on, event_log& log, std::uint64_t incarnation) -> result<std::unique_ptr<device>> {
          result<std::unique_ptr<device>> behind = host_device(willing)(on, log, incarnation);
          if (!behind) return std::unexpected(behind.error());
          auto wrapped = std::make_unique<late_device>(std::move(*behind));
          late = wrapped.get();
          return wrapped;
        });
    expect(made.has_value(), "a runtime can be made");
    kept<result<runtime_report>> first, patient;
    made->async_shutdown(made->now() + long_time, first.handler());
    const auto joined = made->async_shutdown(made->now() + short_time, block);
    expect(!joined && joined.error().code == error_code::timed_out, "the shorter deadline is kept");
    made->async_shutdown(made->now() + long_time * 2, patient.handler());
    expect(!first.came() && !patient.came(), "the shutdown goes on");
    late->end_now();
    expect(first.wait() && first.wait()->clean(), "who began it gets the report");
    expect(patient.wait() && patient.wait()->clean(), "and so does who has more time than it");
    const auto again = made->async_shutdown(made->now() + short_time, block);
    expect(again && again->clean(), "and who asks again");
  });
}

TEST(Runtime, AWrongOptionIsRefusedBeforeAnythingStarts) {
  run_on_side([](platform::host& host) {
    runtime_options options = small_options();
    options.pinned.dedicated_arena_min = 0;
    bool asked = false;
    const auto refused = runtime::create(
        host, options, [&asked](platform::host&, event_log&, std::uint64_t) -> result<std::unique_ptr<device>> {
          asked = true;
          return fail(error_code::absent, "test");
        });
    expect(!refused && refused.error().code == error_code::out_of_range && !asked, "no device was made");
    const auto absent = runtime::create(
        host, small_options(), [](platform::host&, event_log&, std::uint64_t) -> result<std::unique_ptr<device>> {
          return fail(error_code::absent, "test");
        });
    expect(!absent && absent.error().code == error_code::absent, "the device's own error comes through");
  });
}

TEST(Runtime, ABufferThatOutlivesItIsOrdinaryMemory) {
  run_on_side([](platform::host& host) {
    pinned::buffer held;
    {
      auto made = runtime::create(host, small_options(), host_device(willing));
      expect(made.has_value(), "a runtime can be made");
      auto got = made->pinned().async_alloc(granule, block);
      expect(got.has_value(), "it allocates");
      held = std::move(*got);
      const auto report = made->async_shutdown(made->now() + long_time, block);
      expect(report && report->pinned.buffers_held == 1 && report->clean(), "a held buffer does not stop the end");
    }
    held.bytes()[0] = std::byte{7};
    expect(held.bytes()[0] == std::byte{7}, "it can still be used");
  });
}

}  // namespace holdfast::pinned_test
