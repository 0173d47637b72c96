// Events of a real process as lines of a trace.
//
// Why this exists: the flight recorder speaks the vocabulary of traces (docs: traces, line `event`), so that what reads
// a simulated run reads a real one. Made from the table of events alone.
//
// Ownership   Values. Units: as the table of events says; `t` in nanoseconds. Threading: any.
// Failure     Allocates; that may throw std::bad_alloc into the caller.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/telemetry/event.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI {

/// Without the line end. `number`: rises within a file, from 1. `who`: of letters, digits, '-' and '/' only.
std::string event_line(const event_record& event, std::uint64_t number, std::string_view who);

}  // namespace holdfast::inline HOLDFAST_ABI
