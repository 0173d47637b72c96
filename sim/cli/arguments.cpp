#include <sim/cli/arguments.hpp>

#include <sim/campaign/portfolio.hpp>
#include <sim/kernel/strategies/make_strategy.hpp>
#include <sim/trace/build_id.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <deque>

namespace holdfast::sim {

namespace {

struct unit {
  std::string_view name;
  std::int64_t factor;
};
constexpr unit size_units[] = {{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
constexpr unit time_units[] = {
    {"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}, {"min", 60'000'000'000}};

std::optional<std::uint64_t> whole(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> scaled(std::string_view text, std::span<const unit> units) {
  const std::size_t digits = std::min(text.find_first_not_of("-0123456789"), text.size());
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value);
  if (digits == 0 || error != std::errc{} || end != text.data() + digits) return std::nullopt;
  for (const unit& u : units) {
    if (text.substr(digits) != u.name) continue;
    std::int64_t out = 0;
    if (__builtin_mul_overflow(value, u.factor, &out)) return std::nullopt;
    return out;
  }
  return std::nullopt;
}

bool belongs(const option_description& o, std::string_view command) {
  return o.commands.find(' ' + std::string(command) + ' ') != std::string_view::npos;
}

const option_description& describe_option(std::string_view command, std::string_view name) {
  for (const option_description& o : option_table) {
    if (o.name == name && belongs(o, command)) return o;
  }
  throw usage_error{"option " + std::string(name) + " is not declared"};
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> two(std::string_view text, std::string_view between) {
  const std::size_t at = text.find(between);
  if (at == text.npos) return std::nullopt;
  const auto a = whole(text.substr(0, at));
  const auto b = whole(text.substr(at + between.size()));
  if (!a || !b) return std::nullopt;
  return std::pair(*a, *b);
}

bool one_of(std::string_view words, std::string_view word) {
  for (;;) {
    const std::string_view first = words.substr(0, words.find('|'));
    if (first == word) return true;
    if (first.size() == words.size()) return false;
    words.remove_prefix(first.size() + 1);
  }
}

// Empty: the value is fine.
std::string objection(const option_description& o, const std::string& value) {
  const std::string is = "'" + value + "' is ";
  const auto range = [&o](std::string_view unit) {
    const auto shown = [&unit](std::uint64_t v) {
      return unit.empty() ? std::to_string(v) : std::to_string(v / 1'000'000) + "ms";
    };
    return o.high == any ? "from " + shown(o.low) : "from " + shown(o.low) + " to " + shown(o.high);
  };
  switch (o.kind) {
    case option_kind::flag: return "";
    case option_kind::text: return value.empty() ? "needs a value" : "";
    case option_kind::count: {
      const auto number = whole(value);
      return number && *number >= o.low && *number <= o.high ? "" : is + "no whole number " + range("");
    }
    case option_kind::duration: {
      const auto ns = parse_duration(value);
      if (!ns) return is + "no time with a unit (ns, us, ms, s, min), as 60s or 250ms";
      const bool inside =
          *ns >= 0 && static_cast<std::uint64_t>(*ns) >= o.low && static_cast<std::uint64_t>(*ns) <= o.high;
      return inside ? "" : is + "not " + range("ms");
    }
    case option_kind::seeds: {
      const auto range_of_seeds = two(value, "..");
      return range_of_seeds && range_of_seeds->first <= range_of_seeds->second
                 ? ""
                 : is + "no range of seeds A..B with A not above B, as 1..1000";
    }
    case option_kind::shard: {
      const auto shard = two(value, "/");
      return shard && shard->first >= 1 && shard->first <= shard->second && shard->second <= o.high
                 ? ""
                 : is + "no part I/N with I from 1 to N, as 1/4";
    }
    case option_kind::words: return one_of(o.value, value) ? "" : is + "none of " + std::string(o.value);
    case option_kind::strategy: {
      if (value == portfolio) return "";
      const auto made = make_strategy(value);
      return made ? "" : made.error() + "; and portfolio, a mix of them";
    }
    case option_kind::setting: {
      const std::size_t equals = value.find('=');
      if (equals == value.npos || equals == 0) return is + "not of the form KEY=VALUE";
      return parse_number(value.substr(equals + 1))
                 ? ""
                 : "the value of " + is + "no whole number, size (64MiB) or duration (250ms)";
    }
  }
  return "";
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

std::optional<std::int64_t> parse_duration(std::string_view text) { return scaled(text, time_units); }

std::optional<std::int64_t> parse_number(std::string_view text) {
  constexpr unit plain[] = {{"", 1}};
  for (const std::span<const unit> units :
       {std::span<const unit>(plain), std::span<const unit>(size_units), std::span<const unit>(time_units)}) {
    if (const auto value = scaled(text, units)) return value;
  }
  return std::nullopt;
}

namespace {

// CLI11 gives such words to whatever takes a value, and complains about that.
void refuse_unknown_words(int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  const std::string command = argv[1];
  std::string commands;
  bool known = false;
  for (const command_description& c : command_table) {
    commands += (commands.empty() ? "" : ", ") + std::string(c.name);
    known = known || c.name == command;
  }
  if (!known) throw usage_error{"there is no command '" + command + "'; there are " + commands};
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view name = word.substr(0, word.find('='));
    if (!word.starts_with("--") || word == "--" || name == "--help") continue;
    const bool declared = std::ranges::any_of(
        option_table, [&](const option_description& o) { return o.name == name && belongs(o, command); });
    if (!declared) throw usage_error{command + " has no option " + std::string(name) + "; see " + command + " --help"};
  }
}

}  // namespace

arguments arguments::parse(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool later = (i == 1 && std::ranges::find(later_commands, word) != std::end(later_commands)) ||
                       std::ranges::find(later_options, word.substr(0, word.find('='))) != std::end(later_options);
    if (later) throw usage_error{"'" + std::string(word) + "' is not in this version"};
  }

  refuse_unknown_words(argc, argv);

  CLI::App app("Runs the core of Holdfast in a simulated world: every interleaving, every failure, repeatable.",
               "holdfast-sim");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("holdfast-sim " HOLDFAST_VERSION ", build ") + build_id());
  // A deque: what is bound to an option stays where it is.
  struct bound {
    const option_description* what;
    const CLI::App* command;
    std::vector<std::string> values;
    bool set = false;
  };
  std::deque<bound> all;
  for (const command_description& c : command_table) {
    CLI::App* sub = app.add_subcommand(std::string(c.name), std::string(c.text));
    for (const option_description& o : option_table) {
      if (!belongs(o, c.name)) continue;
      bound& b = all.emplace_back(&o, sub, std::vector<std::string>{}, false);
      const std::string name(o.name);
      std::string text(o.text);
      if (o.kind == option_kind::flag) {
        sub->add_flag(name, b.set, text);
        continue;
      }
      if (!o.initial.empty()) text += " (otherwise " + std::string(o.initial) + ")";
      CLI::Option* made = sub->add_option(name, b.values, text);
      made->type_name(o.name == o.value ? "" : std::string(o.value))->required(o.required);
      const bool by_position = !o.name.starts_with('-');
      if (!o.many && !by_position) made->expected(1);
      // One value for each --option, so that what follows it is not swallowed.
      if (o.many && !by_position) made->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
  }
  arguments out;
  out.program_ = argc > 0 ? argv[0] : "holdfast-sim";
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    app.exit(e);
    return out;
  } catch (const CLI::ParseError& e) {
    throw usage_error{one_line(e.what()) + "; see --help"};
  }
  const CLI::App* chosen = app.get_subcommands().front();
  out.command_ = chosen->get_name();
  for (const bound& b : all) {
    if (b.command != chosen) continue;
    if (b.values.size() > 1 && !b.what->many) {
      throw usage_error{std::string(b.what->name) + ": there may be one, and '" + b.values[1] + "' is a second"};
    }
    for (const std::string& value : b.values) {
      if (const std::string wrong = objection(*b.what, value); !wrong.empty()) {
        throw usage_error{std::string(b.what->name) + ": " + wrong};
      }
    }
    if (b.set || !b.values.empty()) out.values_[std::string(b.what->name)] = b.values;
  }
  return out;
}

bool arguments::given(std::string_view name) const { return values_.contains(name); }
bool arguments::flag(std::string_view name) const { return values_.contains(name); }

std::vector<std::string> arguments::texts(std::string_view name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  const option_description& o = describe_option(command_, name);
  return o.initial.empty() ? std::vector<std::string>{} : std::vector<std::string>{std::string(o.initial)};
}

std::string arguments::text(std::string_view name) const {
  const auto all = texts(name);
  return all.empty() ? "" : all.back();
}

std::uint64_t arguments::count(std::string_view name) const { return whole(text(name)).value_or(0); }

std::optional<std::uint64_t> arguments::count_if_given(std::string_view name) const {
  return given(name) ? whole(text(name)) : std::nullopt;
}

std::int64_t arguments::duration_ns(std::string_view name) const { return parse_duration(text(name)).value_or(0); }

std::pair<std::uint64_t, std::uint64_t> arguments::pair(std::string_view name) const {
  const bool seeds = describe_option(command_, name).kind == option_kind::seeds;
  return two(text(name), seeds ? ".." : "/").value_or(std::pair<std::uint64_t, std::uint64_t>(0, 0));
}

parameters arguments::settings() const {
  parameters out;
  for (const std::string& setting : texts("--set")) {
    const std::size_t equals = setting.find('=');
    out[setting.substr(0, equals)] = parse_number(std::string_view(setting).substr(equals + 1)).value_or(0);
  }
  return out;
}

}  // namespace holdfast::sim
