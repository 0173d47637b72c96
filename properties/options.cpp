// The parsers of options against arithmetic: whatever is printed reads back as the same value, every text is either
// refused in one printable sentence or stands for a value inside its range, and whatever is outside is refused by name.
#include <holdfast/platform/abi.hpp>

#include <holdfast/options/configuration.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <string>

namespace holdfast::properties {

namespace {

using namespace options;

struct unit {
  const char* name;
  std::uint64_t factor;
};
constexpr unit size_units[] = {
    {"", 1}, {"B", 1}, {"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30}, {"TiB", 1ull << 40}};
constexpr unit time_units[] = {{"ns", 1},
                               {"us", 1'000},
                               {"ms", 1'000'000},
                               {"s", 1'000'000'000},
                               {"min", 60'000'000'000},
                               {"h", 3'600'000'000'000}};

bool is_time(option_kind kind) { return kind == option_kind::duration || kind == option_kind::duration_or_never; }

template <class Suits>
const option_description& any_option(Suits suits) {
  std::vector<const option_description*> all;
  for (const option_description& what : option_table())
    if (suits(what)) all.push_back(&what);
  return *all[*rc::gen::inRange<std::size_t>(0, all.size())];
}

// Small ones, ones near powers of two, and any.
std::uint64_t any_number() {
  switch (*rc::gen::inRange(0, 3)) {
    case 0: return *rc::gen::inRange<std::uint64_t>(0, 100'000);
    case 1: return (std::uint64_t{1} << *rc::gen::inRange(0, 64)) + *rc::gen::inRange<std::uint64_t>(0, 3) - 1;
    default: return *rc::gen::arbitrary<std::uint64_t>();
  }
}

// Folded into what lies between the two, both included.
std::uint64_t between(std::uint64_t low, std::uint64_t high) {
  const std::uint64_t span = high - low + 1;
  return low + (span == 0 ? any_number() : any_number() % span);
}

bool in_range(const option_description& what, std::uint64_t number) {
  return number >= what.low && number <= what.high;
}

}  // namespace

RC_GTEST_PROP(OptionsProperties, ANumberThatIsPrintedReadsBackAsTheSame, ()) {
  const option_description& what = any_option([](const auto& one) { return is_number(one.kind); });
  const std::uint64_t number = between(what.low, what.high);
  const std::string text = print_value(what, {number, {}});
  const auto read = parse_value(what, text);
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->number == number);
}

RC_GTEST_PROP(OptionsProperties, ANumberWithAUnitIsTheirProductOrRefused, ()) {
  const option_description& what =
      any_option([](const auto& one) { return one.kind == option_kind::size || is_time(one.kind); });
  const unit& in = is_time(what.kind) ? time_units[*rc::gen::inRange<std::size_t>(0, std::size(time_units))]
                                      : size_units[*rc::gen::inRange<std::size_t>(0, std::size(size_units))];
  const std::uint64_t count = any_number();
  const bool overflows = count != 0 && in.factor > UINT64_MAX / count;
  const std::uint64_t product = overflows ? 0 : count * in.factor;
  const bool fits =
      !overflows && in_range(what, product) && !(what.kind == option_kind::duration_or_never && product == INT64_MAX);
  const auto read = parse_value(what, std::to_string(count) + in.name);
  RC_ASSERT(read.has_value() == fits);
  if (fits) RC_ASSERT(read->number == product);
}

RC_GTEST_PROP(OptionsProperties, WhateverIsOutsideItsRangeIsRefusedWithItsNameFromEverySource, ()) {
  const option_description& what = any_option([](const auto& one) {
    return is_number(one.kind) && one.kind != option_kind::boolean && (one.low > 0 || one.high < UINT64_MAX);
  });
  const bool below = what.low > 0 && (what.high == UINT64_MAX || *rc::gen::arbitrary<bool>());
  const std::uint64_t number = below ? between(0, what.low - 1) : between(what.high + 1, UINT64_MAX);
  const std::string text = std::to_string(number) + (is_time(what.kind) ? "ns" : "");
  sources given;
  switch (*rc::gen::inRange(0, 3)) {
    case 0: given.arguments.push_back({std::string(what.name), text}); break;
    case 1: given.environment.push_back({std::string(what.variable), text}); break;
    default: given.file.push_back({std::string(what.name), text, "f.toml", 1});
  }
  const auto made = resolve(given);
  RC_ASSERT(!made.has_value());
  RC_ASSERT(made.error().sentences.size() == 1u);
  RC_ASSERT(made.error().sentences.front().find(what.name) != std::string::npos);
  RC_ASSERT(made.error().sentences.front().find(in_quotes(text)) != std::string::npos);
}

RC_GTEST_PROP(OptionsProperties, EveryTextIsInsideTheRangeOrOnePrintableSentence, (const std::string& text)) {
  const option_description& what = any_option([](const auto&) { return true; });
  const auto read = parse_value(what, text);
  if (read) {
    RC_ASSERT(objection(what, *read).empty());
    const auto again = parse_value(what, print_value(what, *read));
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == *read);
    return;
  }
  for (const char c : read.error()) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

RC_GTEST_PROP(OptionsProperties, AListThatIsPrintedReadsBackAsTheSameWords, ()) {
  const option_description what = {"x", "x.y", "HOLDFAST_X_Y", option_kind::list, "", 1, 1000, "", "0.1", ""};
  const auto words = *rc::gen::resize(
      10, rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(
              rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange('a', static_cast<char>('z' + 1)))))));
  std::string tight, loose;
  for (const std::string& word : words) {
    tight += (tight.empty() ? "" : ",") + word;
    loose += (loose.empty() ? " " : " , ") + word + " ";
  }
  RC_PRE(tight.size() <= 1000u);
  const auto a = parse_value(what, tight);
  const auto b = parse_value(what, loose);
  RC_ASSERT(a.has_value() && b.has_value());
  RC_ASSERT(a->text == tight);
  RC_ASSERT(b->text == tight);
}

// Of the sources that name an option the strongest decides, whatever else is given.
RC_GTEST_PROP(OptionsProperties, TheStrongestSourceDecidesForEachOptionAlone, ()) {
  sources given;
  const auto table = option_table();
  std::vector<origin_kind> expected(table.size(), origin_kind::initial);
  for (std::size_t i = 0; i < table.size(); ++i) {
    const unsigned set = *rc::gen::inRange(0u, 8u);
    const std::string text = print_value(table[i], initial_of(table[i]));
    if (set & 1) given.file.push_back({std::string(table[i].name), text, "f.toml", static_cast<unsigned>(i + 1)});
    if (set & 2) given.environment.push_back({std::string(table[i].variable), text});
    if (set & 4) given.arguments.push_back({std::string(table[i].name), text});
    expected[i] = set & 4   ? origin_kind::argument
                  : set & 2 ? origin_kind::environment
                  : set & 1 ? origin_kind::file
                            : origin_kind::initial;
  }
  const auto made = resolve(given);
  RC_ASSERT(made.has_value());
  for (std::size_t i = 0; i < table.size(); ++i) {
    RC_ASSERT(made->of(static_cast<option_id>(i)).from.from == expected[i]);
    RC_ASSERT(made->of(static_cast<option_id>(i)).value == initial_of(table[i]));
  }
}

}  // namespace holdfast::properties
