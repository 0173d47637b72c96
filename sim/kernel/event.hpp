// What a run's log is made of: core's events and the hardware's, in one order.
//
// Why this exists: checks, models, traces and fingerprints read one stream. No address stands in it: memory is
// named by host, block and offset.
//
// Ownership   Values. Units: nanoseconds of virtual time; fields as the two tables say.
// Threading   One OS thread. Failure: none.
#pragma once

#include <holdfast/telemetry/event.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::sim {

/// Kinds: an `event_id` of core as it is, or a hardware event with the high bit set.
enum class event_kind : std::uint16_t {};

enum class hardware_event : std::uint16_t {
#define HOLDFAST_EVENT(name, ...) name,
#include <sim/kernel/hardware_events.def>
#undef HOLDFAST_EVENT
};

constexpr std::uint16_t hardware_bit = 0x8000;
constexpr event_kind kind_of(holdfast::event_id id) noexcept { return static_cast<event_kind>(id); }
constexpr event_kind kind_of(hardware_event id) noexcept {
  return static_cast<event_kind>(static_cast<std::uint16_t>(id) | hardware_bit);
}
constexpr bool is_hardware(event_kind kind) noexcept { return (static_cast<std::uint16_t>(kind) & hardware_bit) != 0; }
constexpr bool operator==(event_kind a, holdfast::event_id b) noexcept { return a == kind_of(b); }
constexpr bool operator==(event_kind a, hardware_event b) noexcept { return a == kind_of(b); }

struct logged_event {
  std::uint64_t number = 0;  // from 1, over the whole run
  std::int64_t time_ns = 0;
  event_kind kind{};
  std::uint16_t host = 0;   // index of the host; 0xffff = the world itself
  std::uint32_t fiber = 0;  // index of the fiber, 0xffffffff = none (hardware, kernel)
  std::uint16_t field_count = 0;
  std::uint64_t fields[holdfast::event_fields_max] = {};
};

const holdfast::event_description& describe(event_kind kind) noexcept;
std::size_t core_event_count() noexcept;
std::span<const holdfast::event_description> hardware_event_table() noexcept;

}  // namespace holdfast::sim
