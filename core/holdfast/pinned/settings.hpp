// What an embedder may choose about pinned memory, and the ranges it is held to.
//
// Why this exists: a wrong size found at the first allocation is a failure in production; found here, it is one
// sentence at start.
//
// Ownership   A value.
// Units       Bytes.
// Threading   A value.
// Failure     `validate` names the first option that is wrong, its value and its range.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>

#include <cstddef>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::pinned {

/// Allocation unit inside an arena.
inline constexpr std::size_t granule_bytes = 4096;
/// Largest number of granules of one request or arena.
inline constexpr std::uint64_t granules_max = 0xffff'ffffu;

struct settings {
  /// Size of the first pooled arena; each further one is twice as large, up to `max_arena_bytes`.
  std::uint64_t initial_arena_bytes = std::uint64_t{64} << 20;
  /// Ceiling of one pooled arena.
  std::uint64_t max_arena_bytes = std::uint64_t{1} << 30;
  /// Requests of this size or more get an arena of their own.
  std::uint64_t dedicated_arena_min = std::uint64_t{64} << 20;
  /// Ceiling on registered bytes of the runtime; 0 = pinning is always refused.
  std::uint64_t registered_bytes_budget = std::uint64_t{1} << 30;
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

/// Size of the next pooled arena: doubles with each of the `pooled_arenas` there are, up to the maximum, and holds at
/// least `request_bytes`; a multiple of `page_bytes`. 0 if that overflows.
std::uint64_t growth_target(const settings& options, std::uint32_t pooled_arenas, std::uint64_t request_bytes,
                            std::uint64_t page_bytes) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
