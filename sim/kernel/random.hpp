// Random streams of a run.
//
// Why this exists: one seed must give one run on every machine, and a new consumer of randomness must not disturb
// the others; so each consumer has its own stream, derived from the seed by name. No std:: distribution: their
// results differ between libraries.
#pragma once

#include <cstdint>
#include <string_view>

namespace holdfast::sim {

class random_stream {
  __extension__ typedef unsigned __int128 wide;

 public:
  explicit random_stream(std::uint64_t seed = 0) noexcept { reseed(seed); }
  /// The stream `name` of a run with `seed`.
  static random_stream derive(std::uint64_t seed, std::string_view name) noexcept {
    return derive_hashed(seed, hash_of(name));
  }
  /// The same by `hash_of(name)`, for names that are known when the program is compiled.
  static random_stream derive_hashed(std::uint64_t seed, std::uint64_t name_hash) noexcept;
  static constexpr std::uint64_t hash_of(std::string_view name) noexcept {
    // FNV-1a: the mixer of the seed does the rest.
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
  }
  void reseed(std::uint64_t seed) noexcept;

  std::uint64_t next() noexcept {
    // xoshiro256**: period 2^256-1, every bit usable.
    const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }
  /// Uniform over 0 … bound-1 (bound ≥ 1), by the high half of a 64×64 product: the bias is below 2^-32 for the
  /// bounds that a simulator has.
  std::uint64_t below(std::uint64_t bound) noexcept {
    return static_cast<std::uint64_t>((static_cast<wide>(next()) * bound) >> 64);
  }
  /// Uniform over low … high, both included.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) noexcept { return low + below(high - low + 1); }
  /// True with probability `permille` / 1000.
  bool chance(std::uint64_t permille) noexcept { return below(1000) < permille; }

 private:
  static constexpr std::uint64_t rotate(std::uint64_t x, int k) noexcept { return (x << k) | (x >> (64 - k)); }
  std::uint64_t state_[4];
};

}  // namespace holdfast::sim
