#include <sim/backend/pattern.hpp>

namespace holdfast::sim {

void write_pattern(std::span<std::byte> bytes, std::uint64_t seed, std::size_t first) noexcept {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern_at(seed, first + i);
}

std::optional<std::size_t> first_difference(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != pattern_at(seed, i)) return i;
  return std::nullopt;
}

}  // namespace holdfast::sim
