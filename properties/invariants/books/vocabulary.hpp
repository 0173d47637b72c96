// The words in which events are written: the enumerations of telemetry/events.def, and what stands for nothing.
//
// Why this exists: events carry numbers. Whoever learns from them, and whoever judges, means the same by them.
//
// Ownership   Constants.
// Units       Bytes, granules of 4096 bytes where a name says so, virtual nanoseconds.
// Threading   None. Failure: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace holdfast::invariants {

inline constexpr std::uint64_t granule_bytes = 4096;
inline constexpr std::size_t quarantine_kinds = 6;
inline constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint32_t no_fiber = std::numeric_limits<std::uint32_t>::max();
/// As a length of time: for ever.
inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// Order of the enumerations in telemetry/events.def.
namespace verdict {
enum : std::uint64_t { confirmed, refused, unknown };
}
namespace retire_reason {
enum : std::uint64_t { reclaim, shutdown, cancelled, closed, failed, pressure };
}
namespace reclaim_mode {
enum : std::uint64_t { timed, asked, pressure };
}
namespace quarantine_kind {
enum : std::uint64_t { arena, region, span, allocation, prefix, chunk };
}
namespace shutdown_step {
enum : std::uint64_t { gate, drain, close, sweep, report };
}
namespace operation_kind {
enum : std::uint64_t { get, hello, close };
}
namespace operation_exit {
enum : std::uint64_t { inline_done, callback, error, swept, refused, withdrawn };
}
namespace transport_state {
enum : std::uint64_t { probing, absent, running, closing, destroying, swept, gone, hung };
}
namespace connection_state {
enum : std::uint64_t { connecting, greeting, ready, draining, lost, closing, closed, failed, unseen };
}
namespace endpoint_state {
enum : std::uint64_t { open, failed, flushing, forced, destroyed, parked, unseen };
}
namespace endpoint_lane {
enum : std::uint64_t { control, data };
}
namespace wake_cause {
enum : std::uint64_t { none, woken, descriptor, both, deadline };
}
/// Bits of the flags of `transport_capabilities`.
namespace capability {
enum : std::uint64_t {
  untested_version = 1 << 0,
  get_works = 1 << 1,
  shares_memory = 1 << 3,
  registrations_distinct = 1 << 5,
  inline_exit_seen = 1 << 6,
  callback_exit_seen = 1 << 7,
};
}
namespace key_state {
enum : std::uint64_t { unpacked, condemned, destroyed, unseen };
}
namespace evidence_kind {
enum : std::uint64_t { none, answer, completion, witness, fence, termination };
}
namespace progress_state {
enum : std::uint64_t { working, arming, sleeping, stopped, unseen };
}

}  // namespace holdfast::invariants
