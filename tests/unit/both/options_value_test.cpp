// Proves of every option of the table, one by one: its default is inside its range and can be printed and read back, what
// is one beyond a limit is refused, and values that could be misunderstood are refused with what was meant.
#include <holdfast/platform/abi.hpp>

#include <holdfast/options/value.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

namespace holdfast {
namespace {

using namespace options;

constexpr option_description made(option_kind kind, std::uint64_t low, std::uint64_t high,
                                  std::string_view choices = {}) {
  return {"x", "x.y", "HOLDFAST_X_Y", kind, choices, low, high, "", "0.1", "of a test"};
}
constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t longest = std::numeric_limits<std::int64_t>::max();

std::string refused(const option_description& what, std::string_view text) {
  const auto read = parse_value(what, text);
  return read ? "taken as " + print_value(what, *read) : read.error();
}

std::uint64_t number(const option_description& what, std::string_view text) {
  const auto read = parse_value(what, text);
  EXPECT_TRUE(read) << text << ": " << (read ? "" : read.error());
  return read ? read->number : 0;
}

TEST(OptionsTable, NoNameAndNoVariableStandsForTwoOptions) {
  std::set<std::string_view> names;
  for (const option_description& what : option_table()) {
    EXPECT_TRUE(names.insert(what.name).second) << what.name;
    EXPECT_TRUE(names.insert(what.variable).second) << what.variable;
    EXPECT_EQ(std::string(what.subsystem) + "." + std::string(what.key()), what.name);
    EXPECT_TRUE(what.variable.starts_with("HOLDFAST_")) << what.variable;
    EXPECT_FALSE(what.text.empty()) << what.name;
    EXPECT_FALSE(what.since.empty()) << what.name;
  }
  for (const other_variable& other : other_variables()) EXPECT_TRUE(names.insert(other.name).second) << other.name;
}

TEST(OptionsTable, EveryDefaultIsInsideItsRangeAndCanBePrintedAndReadBack) {
  for (const option_description& what : option_table()) {
    const option_value initial = initial_of(what);
    EXPECT_EQ(objection(what, initial), "") << what.name;
    const auto again = parse_value(what, print_value(what, initial));
    ASSERT_TRUE(again) << what.name << ": " << again.error();
    EXPECT_EQ(*again, initial) << what.name;
  }
}

TEST(OptionsTable, EveryLimitIsTakenAndWhatIsOneBeyondItIsRefused) {
  for (const option_description& what : option_table()) {
    if (!is_number(what.kind) || what.kind == option_kind::boolean) continue;
    for (const std::uint64_t limit : {what.low, what.high}) {
      const auto again = parse_value(what, print_value(what, {limit, {}}));
      ASSERT_TRUE(again) << what.name << ": " << again.error();
      EXPECT_EQ(again->number, limit) << what.name;
    }
    const auto written = [&what](std::uint64_t n) {
      return std::to_string(n) + (what.kind == option_kind::size || what.kind == option_kind::count ? "" : "ns");
    };
    if (what.low > 0) {
      EXPECT_FALSE(parse_value(what, written(what.low - 1))) << what.name;
    }
    if (what.high < any) {
      EXPECT_FALSE(parse_value(what, written(what.high + 1))) << what.name;
    }
    EXPECT_FALSE(parse_value(what, "18446744073709551616" + written(0).substr(1))) << what.name;
  }
}

TEST(OptionsTable, TextsListsAndChoicesAreHeldToTheirRanges) {
  for (const option_description& what : option_table()) {
    if (is_number(what.kind)) continue;
    EXPECT_FALSE(parse_value(what, "")) << what.name;
    EXPECT_FALSE(parse_value(what, "a\nb")) << what.name;
    EXPECT_FALSE(parse_value(what, std::string(5000, 'a'))) << what.name;
  }
}

TEST(OptionsValue, SizesTakeSuffixesThatCanBeReadInOneWay) {
  constexpr option_description size = made(option_kind::size, 0, any);
  EXPECT_EQ(number(size, "0"), 0u);
  EXPECT_EQ(number(size, "17"), 17u);
  EXPECT_EQ(number(size, "17B"), 17u);
  EXPECT_EQ(number(size, "4KiB"), 4096u);
  EXPECT_EQ(number(size, "64MiB"), std::uint64_t{64} << 20);
  EXPECT_EQ(number(size, "1GiB"), std::uint64_t{1} << 30);
  EXPECT_EQ(number(size, "3TiB"), std::uint64_t{3} << 40);
  EXPECT_EQ(number(size, "18446744073709551615"), any);
  for (const std::string_view wrong :
       {"", " 1", "1 ", "1 MiB", "-1", "+1", "MiB", "1.5GiB", "0x10", "1PiB", "18446744073709551616", "16777216TiB"})
    EXPECT_FALSE(parse_value(size, wrong)) << wrong;
  for (const std::string_view wrong : {"64M", "64MB", "64mb", "64m", "64mib"})
    EXPECT_NE(refused(size, wrong).find("write MiB"), std::string::npos) << refused(size, wrong);
  EXPECT_NE(refused(size, "1.5GiB").find("fraction"), std::string::npos);
}

TEST(OptionsValue, DurationsNeedAUnit) {
  constexpr option_description time = made(option_kind::duration, 0, longest);
  EXPECT_EQ(number(time, "0s"), 0u);
  EXPECT_EQ(number(time, "7ns"), 7u);
  EXPECT_EQ(number(time, "50us"), 50'000u);
  EXPECT_EQ(number(time, "250ms"), 250'000'000u);
  EXPECT_EQ(number(time, "10s"), 10'000'000'000u);
  EXPECT_EQ(number(time, "5min"), 300'000'000'000u);
  EXPECT_EQ(number(time, "2h"), 7'200'000'000'000u);
  for (const std::string_view wrong :
       {"", "s", "-1s", "1 s", "1s ", "1.5s", "3d", "never", "9223372036854775808ns", "2562048h"})
    EXPECT_FALSE(parse_value(time, wrong)) << wrong;
  EXPECT_NE(refused(time, "250").find("has no unit"), std::string::npos) << refused(time, "250");
  EXPECT_NE(refused(time, "0").find("has no unit"), std::string::npos);
  EXPECT_NE(refused(time, "5m").find("min or ms"), std::string::npos) << refused(time, "5m");
}

TEST(OptionsValue, NeverIsAWordAndNoNumber) {
  constexpr option_description time = made(option_kind::duration_or_never, 0, longest);
  EXPECT_EQ(number(time, "never"), longest);
  EXPECT_EQ(print_value(time, {longest, {}}), "never");
  EXPECT_FALSE(parse_value(time, "9223372036854775807ns"));
  EXPECT_EQ(number(time, "9223372036854775806ns"), longest - 1);
}

TEST(OptionsValue, BooleansAreTrueOrFalse) {
  constexpr option_description flag = made(option_kind::boolean, 0, 1);
  EXPECT_EQ(number(flag, "true"), 1u);
  EXPECT_EQ(number(flag, "false"), 0u);
  for (const std::string_view wrong : {"", "True", "yes", "1", "0", "on", "true "})
    EXPECT_FALSE(parse_value(flag, wrong));
}

TEST(OptionsValue, ListsAreWordsBetweenCommas) {
  constexpr option_description list = made(option_kind::list, 1, 20);
  EXPECT_EQ(parse_value(list, "tcp")->text, "tcp");
  EXPECT_EQ(parse_value(list, "tcp, self ,posix")->text, "tcp,self,posix");
  for (const std::string_view wrong : {"", ",", "tcp,", ",tcp", "tcp,,self", "tcp, ,self", "aaaaaaaaaaaaaaaaaaaaa"})
    EXPECT_FALSE(parse_value(list, wrong)) << wrong;
}

TEST(OptionsValue, ChoicesAreNamedWhenNoneIsMeant) {
  constexpr option_description choice = made(option_kind::choice, 0, 0, "auto|ucx|host");
  EXPECT_EQ(parse_value(choice, "ucx")->text, "ucx");
  for (const std::string_view wrong : {"", "UCX", "auto|ucx", "uc", "ucxx"})
    EXPECT_FALSE(parse_value(choice, wrong)) << wrong;
  EXPECT_EQ(refused(choice, "moon"), "'moon' is none of auto, ucx or host");
}

TEST(OptionsValue, WhatATerminalShouldNotGetIsNotQuoted) {
  EXPECT_EQ(in_quotes("a\033[2Jb\n"), "'a?[2Jb?'");
  const std::string many(80, 'x');
  const std::string longer(100, 'x');
  EXPECT_EQ(in_quotes(many), std::string("'").append(many).append("'"));
  EXPECT_EQ(in_quotes(longer), std::string("'").append(many).append("...'"));
  const std::string cut = in_quotes(std::string(79, 'x').append("\xc3\xa4\xc3\xa4"));
  EXPECT_EQ(cut, std::string("'").append(79, 'x').append("...'"));
}

}  // namespace
}  // namespace holdfast
