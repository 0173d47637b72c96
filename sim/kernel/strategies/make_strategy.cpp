#include <sim/kernel/strategies/make_strategy.hpp>

#include <sim/kernel/strategies/exhaustive.hpp>
#include <sim/kernel/strategies/fifo.hpp>
#include <sim/kernel/strategies/random.hpp>

#include <charconv>
#include <optional>
#include <string_view>

namespace holdfast::sim {

namespace {

constexpr std::uint32_t preemptions_max = 64;

std::optional<std::uint32_t> number(std::string_view text, std::uint32_t max) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value > max) return std::nullopt;
  return value;
}

std::expected<random_weights, std::string> weights(std::string_view text) {
  random_weights out;
  for (bool last = false; !last;) {
    const std::string_view part = text.substr(0, text.find(','));
    last = part.size() == text.size();
    if (!last) text.remove_prefix(part.size() + 1);
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    std::uint32_t* into = key == "stay" ? &out.stay : key == "time" ? &out.time : nullptr;
    if (into == nullptr)
      return std::unexpected("random has no weight '" + std::string(key) + "'; it has stay and time");
    const auto value = number(equals == part.npos ? "" : part.substr(equals + 1), 1000);
    if (!value) return std::unexpected("weight " + std::string(key) + " of random needs a number from 0 to 1000");
    *into = *value;
  }
  return out;
}

}  // namespace

std::expected<std::unique_ptr<strategy>, std::string> make_strategy(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const bool has_argument = colon != text.npos;
  const std::string argument = has_argument ? text.substr(colon + 1) : "";
  if (name == "fifo") {
    if (has_argument) return std::unexpected("strategy 'fifo' takes no argument");
    return std::make_unique<fifo_strategy>();
  }
  if (name == "random") {
    if (!has_argument) return std::make_unique<random_strategy>(std::nullopt);
    const auto given = weights(argument);
    if (!given) return std::unexpected(given.error());
    return std::make_unique<random_strategy>(*given);
  }
  if (name == "exhaustive") {
    const auto preemptions = number(argument, preemptions_max);
    if (!preemptions) return std::unexpected("strategy 'exhaustive:P' needs a number of preemptions from 0 to 64");
    return std::make_unique<exhaustive_strategy>(*preemptions);
  }
  return std::unexpected("there is no strategy '" + text +
                         "'; there are fifo, random, random:stay=N,time=N and exhaustive:P");
}

}  // namespace holdfast::sim
