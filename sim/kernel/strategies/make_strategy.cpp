#include <sim/kernel/strategies/make_strategy.hpp>

#include <sim/kernel/strategies/exhaustive.hpp>
#include <sim/kernel/strategies/fifo.hpp>
#include <sim/kernel/strategies/pct.hpp>
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
  bool has_stay = false;
  bool has_time = false;
  for (bool last = false; !last;) {
    const std::string_view part = text.substr(0, text.find(','));
    last = part.size() == text.size();
    if (!last) text.remove_prefix(part.size() + 1);
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    if (key != "stay" && key != "time")
      return std::unexpected("random has no weight '" + std::string(key) + "'; it has stay and time");
    bool& has = key == "stay" ? has_stay : has_time;
    if (has) return std::unexpected("weight " + std::string(key) + " of random is given twice");
    has = true;
    const std::string_view written = equals == part.npos ? std::string_view() : part.substr(equals + 1);
    const auto value = number(written, 1000);
    if (!value)
      return std::unexpected("weight " + std::string(key) + " of random is '" + std::string(written) +
                             "', not a number from 0 to 1000");
    (key == "stay" ? out.stay : out.time) = *value;
  }
  return out;
}

std::expected<std::unique_ptr<strategy>, std::string> make_pct(std::string_view text) {
  const std::size_t comma = text.find(',');
  const std::string_view written_depth = text.substr(0, comma);
  const auto depth = number(written_depth, pct_strategy::depth_max);
  if (!depth || *depth == 0)
    return std::unexpected("the depth of pct is '" + std::string(written_depth) + "', not a number from 1 to " +
                           std::to_string(pct_strategy::depth_max) + "; write pct:3 or pct:3,2000");
  if (comma == text.npos) return std::make_unique<pct_strategy>(*depth, std::nullopt);
  const std::string_view written_length = text.substr(comma + 1);
  const auto length = number(written_length, pct_strategy::length_max);
  if (!length || *length == 0)
    return std::unexpected("the length of pct is '" + std::string(written_length) +
                           "', not a number of choices from 1 to " + std::to_string(pct_strategy::length_max));
  return std::make_unique<pct_strategy>(*depth, *length);
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
  if (name == "pct") return make_pct(argument);
  if (name == "exhaustive") {
    const auto preemptions = number(argument, preemptions_max);
    if (!preemptions) return std::unexpected("strategy 'exhaustive:P' needs a number of preemptions from 0 to 64");
    return std::make_unique<exhaustive_strategy>(*preemptions);
  }
  return std::unexpected("there is no strategy '" + text +
                         "'; there are fifo, random, random:stay=N,time=N, pct:D, pct:D,K and exhaustive:P");
}

}  // namespace holdfast::sim
