// Hooks by which the simulator watches core. Clause O1.
#pragma once

#include <holdfast/platform/abi.hpp>

namespace holdfast::inline HOLDFAST_ABI {
struct event_record;
}

namespace holdfast::inline HOLDFAST_ABI::platform {

inline constexpr bool events_always_observed = true;
void observe_event(const event_record& record) noexcept;
void observe_suspension(const char* operation, unsigned index, void* task) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::platform
