// Where a runtime's events go: a ring for the flight recorder, and whoever observes.
//
// Why this exists: an event must be emitted inside the critical section that makes it true, so emitting takes no
// ranked lock, is no scheduling point, and allocates nothing.
//
// Ownership   Owned by the runtime; subsystems keep a reference. The ring is allocated once. An owner looks at
//             `kept_for_ever` before it destroys it.
// Threading   `emit` from any thread, under any lock. `copy_recent` at any time; entries that are being written
//             while it runs are left out.
// Failure     None: the newest events overwrite the oldest.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/observe.hpp>
#include <holdfast/telemetry/event.hpp>

#include <atomic>
#include <memory>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI {

class event_log {
 public:
  /// `ring_events` is rounded up to a power of two; 0 records nothing. Events below `recorded` are not recorded.
  explicit event_log(const platform::clock& clock, std::size_t ring_events = 0,
                     event_level recorded = event_level::debug);

  template <class... Fields>
  void emit(event_id id, event_level level, Fields... fields) noexcept {
    static_assert(sizeof...(Fields) <= event_fields_max);
    if (!wants(level)) return;
    event_record record{
        clock_.now().time_since_epoch().count(), id, sizeof...(Fields), 0, {static_cast<std::uint64_t>(fields)...}};
    platform::observe_event(record);
    if (ring_ != nullptr && level >= recorded_) put(record);
  }

  /// A thread that nobody waits for any more may still emit: from here on the owner must not destroy the log.
  void keep_for_ever() noexcept { kept_.store(true, std::memory_order_release); }
  bool kept_for_ever() const noexcept { return kept_.load(std::memory_order_acquire); }

  /// The newest complete records, oldest first. Allocates.
  std::vector<event_record> copy_recent() const;

 private:
  struct cell;
  bool wants([[maybe_unused]] event_level level) const noexcept {
    return platform::events_always_observed || (ring_ != nullptr && level >= recorded_);
  }
  void put(const event_record& record) noexcept;

  const platform::clock& clock_;
  event_level recorded_;
  std::size_t mask_ = 0;
  struct free_cells {
    void operator()(cell* cells) const noexcept;
  };
  std::unique_ptr<cell, free_cells> ring_;
  // Plain std::atomic on purpose (named in tests/layering exceptions): a ring index orders nothing that a schedule
  // could expose, and a scheduling point in every event would drown the interesting ones.
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> kept_{false};
};

}  // namespace holdfast::inline HOLDFAST_ABI
