// What an embedder may choose about pinned memory, and the ranges it is held to.
//
// Why this exists: a wrong size found at the first allocation is a failure in production; found here, it is one
// sentence at start.
//
// Defaults and limits are those of options/options.def.
//
// Ownership   A value.
// Units       Bytes, nanoseconds.
// Threading   A value.
// Failure     `validate` names the first option that is wrong, its value and its range.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/options/defaults.hpp>

#include <cstddef>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::pinned {

/// Allocation unit inside an arena.
inline constexpr std::size_t granule_bytes = 4096;
/// Largest number of granules of one request or arena.
inline constexpr std::uint64_t granules_max = 0xffff'ffffu;

/// As a time: no arena leaves service because of its age.
inline constexpr std::int64_t reclaim_never = INT64_MAX;

struct settings {
  /// Size of the first pooled arena; each further one is twice as large, up to `max_arena_bytes`.
  std::uint64_t initial_arena_bytes = options::initial::pinned::initial_arena_bytes;
  /// Ceiling of one pooled arena.
  std::uint64_t max_arena_bytes = options::initial::pinned::max_arena_bytes;
  /// Requests of this size or more get an arena of their own.
  std::uint64_t dedicated_arena_min = options::initial::pinned::dedicated_arena_min;
  /// Ceiling on registered bytes of the runtime; 0 = pinning is always refused.
  std::uint64_t registered_bytes_budget = options::initial::pinned::registered_bytes_budget;
  /// How long a pooled arena stays registered with nobody using it. A sweep has to find it empty twice, this far apart,
  /// so it goes between one and two times this long after it fell empty (two periods of the sweep, if that is more).
  std::int64_t arena_reclaim_after_ns = options::initial::pinned::arena_reclaim_after_ns;
  /// Pooled bytes that stay registered although nobody uses them; 0 = none.
  std::uint64_t retain_arena_bytes = options::initial::pinned::retain_arena_bytes;
  /// From when on an unanswered unmap counts as unconfirmed, and how long an allocation waits for memory that is being
  /// given back before the budget refuses it.
  std::int64_t unmap_timeout_ns = options::initial::pinned::unmap_timeout_ns;
  /// How often an unmap that the device refused is asked for again: at each following sweep.
  std::uint32_t unmap_retry_max = options::initial::pinned::unmap_retry_max;
  /// Before the budget refuses an allocation, gives back what nobody uses, whatever time and floor say, and tries once
  /// more.
  bool reclaim_on_pressure = options::initial::pinned::reclaim_on_pressure;
  /// Overwrites a buffer's granules with zeros when its last owner lets go: who holds a key of the arena can read what
  /// was there before.
  bool scrub_on_free = options::initial::pinned::scrub_on_free;
};

/// Errors: out_of_range; words are "<option> <value> not in <low>..<high>", numbers the three of them.
result<void> validate(const settings& options) noexcept;

/// Granules that hold `bytes`; 0 if there is no such number: for zero bytes, and for more than `granules_max`.
constexpr std::uint32_t granules_of(std::uint64_t bytes) noexcept {
  const std::uint64_t granules = bytes / granule_bytes + (bytes % granule_bytes != 0 ? 1 : 0);
  return granules > granules_max ? 0 : static_cast<std::uint32_t>(granules);
}

/// The same, or out_of_range for zero and for more than `granules_max`.
result<std::uint32_t> granules_for(std::uint64_t bytes, const char* operation) noexcept;

/// `bytes` rounded up to a multiple of `unit` (a power of two), or 0 if that overflows.
std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) noexcept;

/// Time between two sweeps while there is something to sweep: half of the time an arena may idle, but from 10 to 100 ms,
/// so that dedicated arenas and refused unmaps do not wait for long.
std::int64_t reclaim_period_ns(const settings& options) noexcept;

/// Size of the next pooled arena: doubles with each of the `pooled_arenas` there are, up to the maximum, and holds at
/// least `request_bytes`; a multiple of `page_bytes`. 0 if that overflows.
std::uint64_t growth_target(const settings& options, std::uint32_t pooled_arenas, std::uint64_t request_bytes,
                            std::uint64_t page_bytes) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
