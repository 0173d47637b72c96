// Hooks by which the simulator watches core. On the real side they are empty and vanish. Clause O1.
//
// Why this exists: checks read the event stream in exact order, cancellation is injected at every suspension
// of a task, and a quiet point is where a check may read fields that a lock guards.
#pragma once

#include <holdfast/platform/abi.hpp>

namespace holdfast::inline HOLDFAST_ABI {
struct event_record;
}

namespace holdfast::inline HOLDFAST_ABI::platform {

/// Whether every event is built even if no recorder wants it.
inline constexpr bool events_always_observed = false;
/// Sees every event in the critical section that makes it true.
inline void observe_event(const event_record&) noexcept {}
/// Called at each suspension of a task, with the operation's name and the number of its suspension.
inline void observe_suspension(const char* /*operation*/, unsigned /*index*/, void* /*task*/) noexcept {}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
