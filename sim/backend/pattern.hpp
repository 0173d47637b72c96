// Bytes that tell whose they are: a pattern by seed and offset, to be written by an owner or a device and found again.
//
// Why this exists: a byte that changed under its owner, or a transfer that reported success for bytes that are not the
// source's, shows only if neighbors and other tenants never have equal bytes by design.
//
// Ownership   Values and views for the time of a call.
// Units       Bytes.
// Threading   Any.
// Failure     None.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace holdfast::sim {

/// The byte at `offset` of a pattern: differs between seeds and between offsets.
constexpr std::byte pattern_at(std::uint64_t seed, std::size_t offset) noexcept {
  return static_cast<std::byte>((seed * 167 + offset * 31 + (offset >> 8) * 7 + 1) & 0xff);
}
/// Writes the pattern's bytes from `first` on.
void write_pattern(std::span<std::byte> bytes, std::uint64_t seed, std::size_t first = 0) noexcept;
/// Index of the first byte that is not the pattern's.
std::optional<std::size_t> first_difference(std::span<const std::byte> bytes, std::uint64_t seed) noexcept;

}  // namespace holdfast::sim
