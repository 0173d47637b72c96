// What the tests of pinned memory need: a device whose every answer the test decides, and a pool on top of it.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/host/host_backend.hpp>
#include <holdfast/base/block.hpp>
#include <holdfast/base/capacity_ledger.hpp>
#include <holdfast/pinned/pool.hpp>
#include <tests/unit/both/base_support.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast::pinned_test {

using base_test::surroundings;
using conformance::counter;
using conformance::expect;
using conformance::helper_lock;
using conformance::millisecond;
using conformance::run_on_side;
using conformance::stop_on_side;

inline constexpr std::uint64_t incarnation = 77;
inline constexpr std::uint64_t granule = pinned::granule_bytes;

/// Answers on a thread of its own, at once or when the test lets it.
class test_device final : public pinned::backend {
 public:
  explicit test_device() {
    capabilities_.kind = "test";
    capabilities_.get_works = true;
    thread_.start([this] { answer(); });
  }
  ~test_device() {
    {
      scoped_lock lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  // What it does with requests.
  void hold_maps(bool held) {
    set([&] { maps_held_ = held; });
  }
  void hold_unmaps(bool held) {
    set([&] { unmaps_held_ = held; });
  }
  void fail_maps(std::optional<error_code> code) {
    set([&] { map_failure_ = code; });
  }
  void register_less(bool less) {
    set([&] { less_ = less; });
  }
  void answer_unmaps(pinned::unmap_verdict verdict) {
    set([&] { verdict_ = verdict; });
  }
  void refuse_gets(std::optional<error_code> code) {
    set([&] { get_refusal_ = code; });
  }
  pinned::capabilities& capabilities() { return capabilities_; }

  // What happened.
  counter maps_seen, unmaps_seen, gets_seen, unmaps_answered;
  /// The oldest fetch that was not ended yet.
  pinned::get_request& oldest_get() {
    scoped_lock lock(mutex_);
    return *gets_.front();
  }
  void end_get(pinned::get_outcome outcome, const error& why = {}) {
    pinned::get_request* ended = nullptr;
    {
      scoped_lock lock(mutex_);
      ended = gets_.front();
      gets_.erase(gets_.begin());
    }
    if (outcome == pinned::get_outcome::ok) std::memset(ended->destination, 0x5a, ended->bytes);
    ended->ended(outcome, why);
  }

  const pinned::capabilities& declared() const noexcept override { return capabilities_; }
  std::uint64_t incarnation() const noexcept override { return pinned_test::incarnation; }
  void submit_map(pinned::map_request& request) noexcept override {
    set([&] { maps_.push_back(&request); });
    maps_seen.add();
  }
  void submit_unmap(pinned::unmap_request& request) noexcept override {
    set([&] { unmaps_.push_back(&request); });
    unmaps_seen.add();
  }
  result<void> submit_get(pinned::get_request& request) noexcept override {
    scoped_lock lock(mutex_);
    if (get_refusal_) return fail(*get_refusal_, "test.get");
    request.operation = ++last_operation_;
    gets_.push_back(&request);
    lock.unlock();
    // The test ends nothing before `gets_seen` moved, so the request is still there.
    request.accepted();
    gets_seen.add();
    return {};
  }

 private:
  void set(auto change) {
    scoped_lock lock(mutex_);
    change();
    changed_.notify_all();
  }
  void answer() {
    scoped_lock lock(mutex_);
    for (;;) {
      if (!maps_held_ && !maps_.empty()) {
        pinned::map_request* const request = maps_.front();
        maps_.erase(maps_.begin());
        result<pinned::mapped_range> mapped =
            pinned::mapped_range{++last_region_, request->address, less_ ? granule : request->bytes, {}};
        if (map_failure_) mapped = fail(*map_failure_, "test.map");
        lock.unlock();
        request->mapped(mapped);
        lock.lock();
      } else if (!unmaps_held_ && !unmaps_.empty()) {
        pinned::unmap_request* const request = unmaps_.front();
        unmaps_.erase(unmaps_.begin());
        const pinned::unmap_verdict verdict = verdict_;
        lock.unlock();
        request->unmapped(verdict);
        unmaps_answered.add();
        lock.lock();
      } else if (stopping_) {
        return;
      } else {
        changed_.wait(mutex_);
      }
    }
  }

  pinned::capabilities capabilities_;
  platform::mutex mutex_{helper_lock};
  platform::condition_variable changed_;
  std::vector<pinned::map_request*> maps_;
  std::vector<pinned::unmap_request*> unmaps_;
  std::vector<pinned::get_request*> gets_;
  std::optional<error_code> map_failure_, get_refusal_;
  pinned::unmap_verdict verdict_ = pinned::unmap_verdict::confirmed;
  bool maps_held_ = false, unmaps_held_ = false, less_ = false, stopping_ = false;
  std::uint64_t last_region_ = 0, last_operation_ = 0;
  conformance::team thread_;
};

/// What a handler was given, for a test that goes on meanwhile.
template <class R>
class kept {
 public:
  auto handler() {
    return boost::asio::bind_cancellation_slot(signal_.slot(), [this](R value) {
      value_.emplace(std::move(value));
      came_.add();
    });
  }
  void cancel() { signal_.emit(boost::asio::cancellation_type::terminal); }
  R& wait() {
    came_.wait_for(1);
    return *value_;
  }
  bool came() { return came_.value() != 0; }

 private:
  boost::asio::cancellation_signal signal_;
  counter came_;
  std::optional<R> value_;
};

/// Arenas of 16 granules at first, 64 at most; 32 granules and more get an arena of their own.
inline pinned::settings small_settings() {
  pinned::settings options;
  options.initial_arena_bytes = 16 * granule;
  options.max_arena_bytes = 64 * granule;
  options.dedicated_arena_min = 32 * granule;
  return options;
}

/// A pool over a test device. Destroyed bottom-up: the pool before the device and the books.
struct small_pool {
  explicit small_pool(platform::host& host, std::uint64_t budget = 256 * granule,
                      const pinned::settings& options = small_settings())
      : around(host),
        log(host.clock(), 1 << 14, event_level::trace),
        environment(host.executor(), host.clock(), log, frames),
        ledger(1, budget, log),
        device(std::make_unique<test_device>()),
        memory(std::make_unique<pinned::memory>(
            *pinned::memory::create(1, host.pages(), environment, ledger, *device, options))) {
    conformance::keep_time_calm();
  }

  result<pinned::buffer> alloc(std::uint64_t bytes) { return memory->async_alloc(bytes, block); }
  /// A buffer that the test needs to go on.
  pinned::buffer must_alloc(std::uint64_t bytes) {
    auto got = alloc(bytes);
    expect(got.has_value(), "the pool has room for what the test needs");
    return got ? std::move(*got) : pinned::buffer();
  }
  pinned::shutdown_report shutdown(platform::duration within) {
    auto report = memory->async_shutdown(around.in(within), block);
    expect(report.has_value(), "a shutdown ends with a report");
    return report ? *report : pinned::shutdown_report();
  }
  std::uint64_t charged() const { return ledger.snapshot().charged_bytes; }
  std::uint64_t events(event_id id) const {
    std::uint64_t count = 0;
    for (const auto& record : log.copy_recent()) count += record.id == id;
    return count;
  }
  /// A witness for this pool's incarnation.
  witness gone() {
    auto backend = host_backend::create(log, incarnation);
    expect(backend.has_value(), "a host backend can be made");
    auto made = (*backend)->close();
    expect(made.has_value(), "it gives a witness when it closes");
    return std::move(*made);
  }

  surroundings around;
  event_log log;
  frame_pool frames;
  task_environment environment;
  capacity_ledger ledger;
  std::unique_ptr<test_device> device;
  std::unique_ptr<pinned::memory> memory;
};

inline constexpr platform::duration long_time{60'000'000'000};
inline constexpr platform::duration short_time = 20 * millisecond;

}  // namespace holdfast::pinned_test
