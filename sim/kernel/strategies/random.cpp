#include <sim/kernel/strategies/random.hpp>

#include <sim/kernel/world.hpp>

#include <cstdio>

namespace holdfast::sim {

namespace {

// Even mixing finds what is near; long stays reach what lies behind many steps of one fiber; time is usually slow,
// since most work needs none, and now and then fast enough to overtake it.
constexpr std::uint32_t stays[] = {200, 500, 500, 700, 850, 900, 950, 980};
constexpr std::uint32_t times[] = {0, 1, 5, 20, 20, 60, 150, 400};

constexpr std::uint64_t stream_name = random_stream::hash_of("strategy");

constexpr std::uint32_t threshold(std::uint32_t permille) noexcept { return permille * 65536 / 1000; }

// Below `bound` by the high half of a product, from the upper 32 bits.
std::uint32_t scale(std::uint64_t random, std::uint32_t bound) noexcept {
  return static_cast<std::uint32_t>(((random >> 32) * bound) >> 32);
}

}  // namespace

std::string_view random_strategy::name() const noexcept {
  const int size = std::snprintf(name_, sizeof name_, "random:stay=%u,time=%u", weights_.stay, weights_.time);
  return {name_, static_cast<std::size_t>(size)};
}

void random_strategy::begin(world& w) {
  stream_ = random_stream::derive_hashed(w.settings().seed, stream_name);
  // Drawn even if given, so that giving what was drawn repeats the run.
  const std::uint64_t drawn = stream_.next();
  weights_ = given_ ? *given_ : random_weights{stays[drawn & 7], times[(drawn >> 8) & 7]};
  stay_below_ = threshold(weights_.stay);
  time_below_ = threshold(weights_.time);
}

std::uint32_t random_strategy::choose(world&, const choice_point& at) {
  const std::uint64_t random = stream_.next();
  // Nothing but events due at one instant.
  if (at.fibers == 0) return scale(random, at.enabled);
  if (at.enabled > at.fibers && !at.calm) {
    const bool time = ((random >> 16) & 0xffff) < time_below_;
    if (time) return at.fibers + scale(random, at.enabled - at.fibers);
  }
  if (at.current == choice_point::none) return scale(random, at.fibers);
  if (at.fibers == 1 || (random & 0xffff) < stay_below_) return at.current;
  const std::uint32_t other = scale(random, at.fibers - 1);
  return other < at.current ? other : other + 1;
}

}  // namespace holdfast::sim
