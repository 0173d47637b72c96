// One emit function for each event of telemetry/events.def: `emit::arena_settled(log, generation, region, charge, forced)`.
//
// The number of arguments is checked against the table when the call is compiled; each must convert to 64 bits.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/telemetry/event_log.hpp>

namespace holdfast::inline HOLDFAST_ABI::emit {

#define HOLDFAST_EVENT(name, level, subject, sentence, ...)                                \
  template <class... Fields>                                                               \
  void name(event_log& log, Fields... fields) noexcept {                                   \
    static_assert(sizeof...(Fields) == holdfast::detail::event_field_count(__VA_ARGS__),   \
                  "wrong number of fields for event " #name ", see telemetry/events.def"); \
    log.emit(event_id::name, event_level::level, fields...);                               \
  }
#include <holdfast/telemetry/events.def>
#undef HOLDFAST_EVENT

}  // namespace holdfast::inline HOLDFAST_ABI::emit
