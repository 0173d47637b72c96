// Known bytes: what a peer serves, and what must have arrived.
//
// Why this exists: a fetch that reports success may have brought old bytes, other bytes, or all but the last. Every
// byte depends on the seed and its place; a destination holds the complement before, so that a byte that was never
// written is never right.
//
// Ownership   None. Units: bytes. Threading: any. Failure: none.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace holdfast::smoke {

/// The bytes from place `from` on.
void write_pattern(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t from = 0) noexcept;
/// The complement of each.
void write_complement(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t from = 0) noexcept;
/// The place within `bytes` of the first that is wrong; none: every byte is right.
std::optional<std::size_t> first_wrong(std::span<const std::byte> bytes, std::uint64_t seed,
                                       std::uint64_t from = 0) noexcept;

}  // namespace holdfast::smoke
