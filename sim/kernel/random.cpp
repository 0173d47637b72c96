#include <sim/kernel/random.hpp>

namespace holdfast::sim {

namespace {
// splitmix64: spreads a seed over a state that must not be all zeros.
std::uint64_t mix(std::uint64_t& x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  std::uint64_t z = x;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
}  // namespace

void random_stream::reseed(std::uint64_t seed) noexcept {
  for (auto& word : state_) word = mix(seed);
}

random_stream random_stream::derive_hashed(std::uint64_t seed, std::uint64_t name_hash) noexcept {
  // The name is folded into the seed through the mixer: streams of one run differ in every bit.
  std::uint64_t state = seed;
  const std::uint64_t spread = mix(state);
  return random_stream(spread ^ name_hash);
}

}  // namespace holdfast::sim
