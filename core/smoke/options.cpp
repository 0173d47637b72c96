#include <holdfast/platform/abi.hpp>

#include "smoke/options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <deque>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace holdfast::smoke {

namespace {

enum class kind : std::uint8_t { flag, part, size, count, time, file, hidden_text, hidden_count };

struct description {
  std::string_view name;
  kind what;
  std::string_view value;    // what stands for the value in help
  std::string_view initial;  // empty: none
  std::uint64_t low, high;
  bool many;
  std::string_view text;
};

constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t pid_max = std::uint64_t{1} << 22;  // of the kernel

constexpr std::string_view parts[] = {"ucx", "verbs", "cuda", "host"};

constexpr description table[] = {
    // name        kind         value                  initial  low  high  many  text
    {"--only", kind::part, "ucx|verbs|cuda|host", "", 0, 0, true, "check this part only; may be given more than once"},
    {"--bytes", kind::size, "N", "32MiB", 64, std::uint64_t{4} << 30, false, "the largest GET, as 64MiB"},
    {"--peers", kind::count, "N", "2", 1, 64, false, "processes that serve memory"},
    {"--seconds", kind::time, "N", "2", second / 10, 86'400 * second, false,
     "how long GETs are measured; units may be named, as 500ms"},
    {"--record", kind::file, "FILE", "", 0, 0, false, "write what happened, as the event lines of a trace"},
    {"--json", kind::flag, "", "", 0, 0, false, "one JSON document on standard output instead of the table"},
    {"--ucx-library", kind::hidden_text, "FILE", "", 0, 0, false, "what to load instead of the usual UCX library"},
    {"--serve", kind::hidden_count, "SEED", "", 0, any, false, "be a peer"},
    {"--parent", kind::hidden_count, "PID", "0", 0, pid_max, false, "of the process to end with"},
};

/// What the contract of the tools names and this version does not have.
constexpr std::string_view later[] = {"--calibrate"};

struct unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr unit size_units[] = {{"", 1}, {"KiB", 1u << 10}, {"MiB", 1u << 20}, {"GiB", 1u << 30}};
constexpr unit time_units[] = {{"", second},      {"ns", 1},     {"us", 1'000},
                               {"ms", 1'000'000}, {"s", second}, {"min", 60 * second}};

std::optional<std::uint64_t> scaled(std::string_view text, std::span<const unit> units) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + digits, value);
  if (digits == 0 || failed != std::errc{} || end != text.data() + digits) return std::nullopt;
  for (const unit& u : units) {
    if (text.substr(digits) != u.name) continue;
    std::uint64_t out = 0;
    if (__builtin_mul_overflow(value, u.factor, &out)) return std::nullopt;
    return out;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> whole(std::string_view text) {
  constexpr unit plain[] = {{"", 1}};
  return scaled(text, plain);
}

std::string shown(const description& d, std::uint64_t value) {
  if (d.what == kind::time)
    return value % second == 0 ? std::to_string(value / second) + "s" : std::to_string(value / 1'000'000) + "ms";
  if (d.what == kind::size && value >= (1u << 30) && value % (1u << 30) == 0)
    return std::to_string(value >> 30) + "GiB";
  return std::to_string(value);
}

// Empty: the value is fine.
std::string objection(const description& d, const std::string& value) {
  const auto inside = [&d](std::optional<std::uint64_t> number) {
    return number && *number >= d.low && *number <= d.high;
  };
  const std::string range = " from " + shown(d, d.low) + " to " + shown(d, d.high);
  switch (d.what) {
    case kind::flag: return "";
    case kind::part:
      return std::ranges::find(parts, value) != std::end(parts) ? ""
                                                                : "'" + value + "' is none of " + std::string(d.value);
    case kind::size:
      return inside(parse_size(value)) ? "" : "'" + value + "' is no size" + range + ", as 4096 or 64MiB";
    case kind::time:
      return inside(scaled(value, time_units)) ? "" : "'" + value + "' is no time" + range + ", as 2, 2s or 500ms";
    case kind::count:
    case kind::hidden_count: return inside(whole(value)) ? "" : "'" + value + "' is no whole number" + range;
    case kind::file:
      if (value.ends_with(".zst")) return "'" + value + "' is compressed by name, and recordings are written plain";
      return value.empty() ? "needs a name" : "";
    case kind::hidden_text: return value.empty() ? "needs a name" : "";
  }
  return "";
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

struct bound {
  const description* what;
  std::vector<std::string> values;
  bool set = false;
};

const bound& named(const std::deque<bound>& all, std::string_view name) {
  return *std::ranges::find_if(all, [name](const bound& b) { return b.what->name == name; });
}

std::string last(const bound& b) { return b.values.empty() ? std::string(b.what->initial) : b.values.back(); }

options taken(const std::deque<bound>& all) {
  options out;
  const bound& only = named(all, "--only");
  const auto wanted = [&only](std::string_view part) {
    return only.values.empty() || std::ranges::find(only.values, part) != only.values.end();
  };
  out.ucx = wanted("ucx");
  out.verbs = wanted("verbs");
  out.cuda = wanted("cuda");
  out.host = wanted("host");
  out.bytes = *parse_size(last(named(all, "--bytes")));
  out.peers = static_cast<unsigned>(*whole(last(named(all, "--peers"))));
  out.seconds = *parse_time(last(named(all, "--seconds")));
  out.record = last(named(all, "--record"));
  out.json = named(all, "--json").set;
  out.ucx_library = last(named(all, "--ucx-library"));
  out.serve_seed = whole(last(named(all, "--serve")));
  out.serve_parent = static_cast<int>(*whole(last(named(all, "--parent"))));
  return out;
}

}  // namespace

std::optional<std::uint64_t> parse_size(const std::string& text) { return scaled(text, size_units); }

std::optional<std::chrono::nanoseconds> parse_time(const std::string& text) {
  const auto ns = scaled(text, time_units);
  if (!ns || *ns > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return std::chrono::nanoseconds(*ns);
}

std::optional<options> parse(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (std::ranges::find(later, word.substr(0, word.find('='))) != std::end(later))
      throw usage_error{"'" + std::string(word) + "' is not in this version"};
  }
  CLI::App app("Does this machine behave as Holdfast assumes? Runs the real core, end to end, with real bytes.",
               "holdfast-smoke");
  app.set_version_flag("--version", "holdfast-smoke " HOLDFAST_VERSION);
  app.footer("Exit: 0 nothing failed and at least one part ran; 1 something failed, or nothing ran; 2 wrong usage.");
  std::deque<bound> all;  // what is bound to an option stays where it is
  for (const description& d : table) {
    bound& b = all.emplace_back(&d, std::vector<std::string>{}, false);
    std::string text(d.text);
    if (!d.initial.empty()) text += " (otherwise " + std::string(d.initial) + ")";
    const std::string name(d.name);
    if (d.what == kind::flag) {
      app.add_flag(name, b.set, text);
      continue;
    }
    CLI::Option* const made = app.add_option(name, b.values, text);
    made->type_name(std::string(d.value))->expected(1);
    // Of an option that may be given more than once all are kept; of the others CLI11 takes one.
    if (d.many) made->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (d.what == kind::hidden_text || d.what == kind::hidden_count) made->group("");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    app.exit(e);
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    throw usage_error{one_line(e.what()) + "; see --help"};
  }
  for (const bound& b : all)
    for (const std::string& value : b.values)
      if (const std::string wrong = objection(*b.what, value); !wrong.empty())
        throw usage_error{std::string(b.what->name) + ": " + wrong};
  return taken(all);
}

}  // namespace holdfast::smoke
