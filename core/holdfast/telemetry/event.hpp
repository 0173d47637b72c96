// What an event is: one fixed record, and the table that describes every kind.
//
// Why this exists: models, checks, recorder, log lines and documents all read the same facts. They are written
// down once, in telemetry/events.def.
//
// Ownership   Records are values.
// Units       Nanoseconds of the host's clock; fields as the table says.
// Threading   Values and constants.
// Failure     None.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI {

enum class event_level : std::uint8_t { trace, debug, info, warn, error };

enum class event_id : std::uint16_t {
#define HOLDFAST_EVENT(name, ...) name,
#include <holdfast/telemetry/events.def>
#undef HOLDFAST_EVENT
};

inline constexpr std::size_t event_fields_max = 6;

struct event_record {
  std::int64_t time_ns = 0;
  event_id id{};
  std::uint16_t field_count = 0;
  std::uint32_t reserved = 0;
  std::uint64_t fields[event_fields_max] = {};
};

struct event_description {
  std::string_view name;
  event_level level;
  std::string_view subject;
  std::string_view sentence;
  /// "name:type", in order; empty after the last.
  std::string_view fields[event_fields_max];
  std::uint16_t field_count;
};

/// All kinds, indexed by `event_id`.
std::span<const event_description> event_table() noexcept;
inline const event_description& describe(event_id id) noexcept { return event_table()[static_cast<std::size_t>(id)]; }

namespace detail {
template <class... Fields>
constexpr std::uint16_t event_field_count(Fields...) noexcept {
  return static_cast<std::uint16_t>(sizeof...(Fields));
}
}  // namespace detail

}  // namespace holdfast::inline HOLDFAST_ABI
