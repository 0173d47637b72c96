#include <holdfast/platform/abi.hpp>

#include <holdfast/options/configuration.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace holdfast::inline HOLDFAST_ABI::options {

namespace {

constexpr std::string_view prefix = "HOLDFAST_";

// How many letters have to be changed, added or left out; more than `longest` letters are not compared.
std::size_t distance(std::string_view a, std::string_view b) noexcept {
  constexpr std::size_t longest = 80;
  if (a.size() > longest || b.size() > longest) return longest;
  std::array<std::size_t, longest + 1> row{};
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, corner + (a[i - 1] == b[j - 1] ? 0 : 1)});
      corner = above;
    }
  }
  return row[b.size()];
}

class search {
 public:
  explicit search(std::string_view wrong) noexcept
      : wrong_(wrong), best_(std::max<std::size_t>(2, wrong.size() / 3) + 1) {}
  void offer(std::string_view known) noexcept { offer(known, wrong_); }
  void offer(std::string_view known, std::string_view as) noexcept {
    if (const std::size_t d = distance(as, known); d < best_) {
      best_ = d;
      found_ = known;
    }
  }
  std::string_view found() const noexcept { return found_; }

 private:
  std::string_view wrong_, found_;
  std::size_t best_;
};

std::string place_of(origin_kind from, const assignment& given) {
  switch (from) {
    case origin_kind::file: return given.file + ":" + std::to_string(given.line);
    case origin_kind::environment: return given.name;
    default: return "--" + given.name;
  }
}

// "holdfast.toml:3: pinned.unmap_timeout: '5' has no unit; ...": in the place of an argument or a variable its own name
// says which option it is.
std::string complaint(origin_kind from, const assignment& given, const option_description& what,
                      std::string_view sentence) {
  std::string out = place_of(from, given) + ": ";
  if (from != origin_kind::argument) out.append(what.name).append(": ");
  return out.append(sentence);
}

std::string unknown(origin_kind from, const assignment& given) {
  std::string out = from == origin_kind::file ? place_of(from, given) + ": there is no option " + in_quotes(given.name)
                                              : "there is no option " + in_quotes("--" + given.name);
  if (const std::string_view near = nearest_option(given.name); !near.empty())
    out.append("; the nearest is ").append(from == origin_kind::file ? "" : "--").append(near);
  return out;
}

std::string unknown_variable(const std::string& name) {
  search nearest(name);
  for (const option_description& what : option_table()) nearest.offer(what.variable);
  for (const other_variable& other : other_variables()) nearest.offer(other.name);
  std::string out = "the variable " + in_quotes(name) + " means nothing and is ignored";
  if (!nearest.found().empty()) out.append("; the nearest is ").append(nearest.found());
  return out;
}

const option_description* find_variable(std::string_view name) noexcept {
  const auto table = option_table();
  const auto found = std::ranges::find(table, name, &option_description::variable);
  return found == table.end() ? nullptr : &*found;
}

bool is_other_variable(std::string_view name) noexcept {
  const auto others = other_variables();
  return std::ranges::find(others, name, &other_variable::name) != others.end();
}

}  // namespace

std::string_view name_of(origin_kind kind) noexcept {
  switch (kind) {
    case origin_kind::initial: return "default";
    case origin_kind::file: return "file";
    case origin_kind::environment: return "environment";
    case origin_kind::argument: return "argument";
  }
  return "";
}

void refusal::add(std::string sentence) {
  if (sentences.size() < sentences_max)
    sentences.push_back(std::move(sentence));
  else
    ++more;
}

configuration::configuration() {
  settings_.reserve(option_table().size());
  for (const option_description& what : option_table()) settings_.push_back({initial_of(what), {}});
}

std::string configuration::origin_text(option_id which) const {
  const origin& from = of(which).from;
  std::string out(name_of(from.from));
  switch (from.from) {
    case origin_kind::initial: break;
    case origin_kind::file: out += " " + from.file + ":" + std::to_string(from.line); break;
    case origin_kind::environment: out.append(" ").append(description_of(which).variable); break;
    case origin_kind::argument: out.append(" --").append(description_of(which).name); break;
  }
  return out;
}

std::expected<configuration, refusal> resolve(const sources& given) {
  const auto table = option_table();
  configuration out;
  refusal wrong;
  // From the weakest source to the strongest, so that each overrides what was there.
  const auto take = [&](origin_kind from, const assignment& one, const option_description& what) {
    auto value = parse_value(what, one.value);
    if (!value) return wrong.add(complaint(from, one, what, value.error()));
    configuration::setting& place = out.settings_[static_cast<std::size_t>(&what - table.data())];
    if (place.from.from == from) return wrong.add(complaint(from, one, what, "it is given twice"));
    place = {std::move(*value), {from, one.file, one.line}};
  };
  const auto take_named = [&](origin_kind from, const assignment& one) {
    if (const option_description* const what = find_option(one.name))
      take(from, one, *what);
    else
      wrong.add(unknown(from, one));
  };
  for (const assignment& one : given.file) take_named(origin_kind::file, one);
  for (const assignment& one : given.environment) {
    if (!one.name.starts_with(prefix)) continue;
    if (const option_description* const what = find_variable(one.name))
      take(origin_kind::environment, one, *what);
    else if (!is_other_variable(one.name))
      out.warnings_.push_back(unknown_variable(one.name));
  }
  for (const assignment& one : given.arguments) take_named(origin_kind::argument, one);
  if (wrong.sentences.empty())
    for (const order_rule& rule : order_rules()) {
      if (out.number(rule.lower) <= out.number(rule.upper)) continue;
      const option_description& lower = description_of(rule.lower);
      const option_description& upper = description_of(rule.upper);
      wrong.add(std::string(lower.name) + " is " + in_quotes(print_value(lower, out.of(rule.lower).value)) + " (" +
                out.origin_text(rule.lower) + "), more than " + std::string(upper.name) + ", which is " +
                in_quotes(print_value(upper, out.of(rule.upper).value)) + " (" + out.origin_text(rule.upper) + ")");
    }
  if (!wrong.sentences.empty()) return std::unexpected(std::move(wrong));
  return out;
}

const option_description* find_option(std::string_view name) noexcept {
  const auto table = option_table();
  const auto found = std::ranges::find(table, name, &option_description::name);
  return found == table.end() ? nullptr : &*found;
}

std::string_view nearest_option(std::string_view name) {
  // A key that stands in the wrong table, or in none, is the same key.
  const std::string_view key = name.substr(name.rfind('.') + 1);
  for (const option_description& what : option_table())
    if (what.key() == key) return what.name;
  search nearest(name);
  for (const option_description& what : option_table()) nearest.offer(what.name);
  return nearest.found();
}

}  // namespace holdfast::inline HOLDFAST_ABI::options
