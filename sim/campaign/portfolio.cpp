#include <sim/campaign/portfolio.hpp>

#include <sim/kernel/random.hpp>

namespace holdfast::sim {

namespace {

// Weights as `random` itself never draws them: any stay, and time over three orders of magnitude.
std::string drawn_weights(random_stream& draw) {
  const std::uint64_t stay = draw.below(1000);
  const std::uint64_t time = draw.below(std::uint64_t{1} << draw.below(10));
  return "random:stay=" + std::to_string(stay) + ",time=" + std::to_string(time);
}

struct entry {
  std::uint32_t share;  // parts of the sum
  std::string_view text;
  std::string (*make)(random_stream&);  // instead of a text
};

constexpr entry mix[] = {
    {4, "random", nullptr},
    {2, "", drawn_weights},
    {2, "pct:2", nullptr},
    {2, "pct:3", nullptr},
};

constexpr std::uint32_t shares() {
  std::uint32_t sum = 0;
  for (const entry& e : mix) sum += e.share;
  return sum;
}

}  // namespace

std::string strategy_for(std::string_view text, std::string_view scenario, std::uint64_t seed) {
  if (text != portfolio) return std::string(text);
  random_stream draw = random_stream::derive(seed, "portfolio/" + std::string(scenario));
  std::uint64_t place = draw.below(shares());
  for (const entry& e : mix) {
    if (place < e.share) return e.make != nullptr ? e.make(draw) : std::string(e.text);
    place -= e.share;
  }
  return "random";
}

}  // namespace holdfast::sim
