// Proves that of several sources the strongest decides and the origin says so, that everything wrong is said at once
// with its place, and that nothing is applied then; and that the settings structs have the defaults of the table.
#include <holdfast/platform/abi.hpp>

#include <holdfast/options/check.hpp>
#include <holdfast/options/configuration.hpp>
#include <holdfast/runtime/configured.hpp>

#include <gtest/gtest.h>

#include <string>

namespace holdfast {
namespace {

using namespace options;

constexpr std::string_view timeout = "pinned.unmap_timeout";
constexpr std::string_view timeout_variable = "HOLDFAST_PINNED_UNMAP_TIMEOUT";

assignment in_file(std::string_view name, std::string_view value, unsigned line) {
  return {std::string(name), std::string(value), "f.toml", line};
}
assignment named(std::string_view name, std::string_view value) { return {std::string(name), std::string(value)}; }

std::string all_of(const refusal& wrong) {
  std::string out;
  for (const std::string& sentence : wrong.sentences) out += sentence + "\n";
  return out;
}

std::string refused(sources given) {
  const auto made = resolve(given);
  return made ? "nothing was refused" : all_of(made.error());
}

TEST(OptionsConfiguration, WithoutSourcesEveryOptionHasItsDefault) {
  const auto made = resolve({});
  ASSERT_TRUE(made);
  for (std::size_t i = 0; i < option_table().size(); ++i) {
    const auto which = static_cast<option_id>(i);
    EXPECT_EQ(made->of(which).value, initial_of(option_table()[i]));
    EXPECT_EQ(made->origin_text(which), "default");
  }
  EXPECT_TRUE(made->warnings().empty());
}

// Every set of sources: the strongest of the set decides, for every option whose default can be changed.
TEST(OptionsConfiguration, ArgumentBeatsEnvironmentBeatsFileBeatsDefault) {
  for (unsigned set = 0; set < 8; ++set) {
    sources given;
    if (set & 1) given.file.push_back(in_file(timeout, "1s", 7));
    if (set & 2) given.environment.push_back(named(timeout_variable, "2s"));
    if (set & 4) given.arguments.push_back(named(timeout, "3s"));
    const auto made = resolve(given);
    ASSERT_TRUE(made) << all_of(made.error());
    const std::uint64_t seconds = set & 4 ? 3 : set & 2 ? 2 : set & 1 ? 1 : 5;
    EXPECT_EQ(made->number(option_id::pinned_unmap_timeout), seconds * 1'000'000'000) << set;
    EXPECT_EQ(made->origin_text(option_id::pinned_unmap_timeout), set & 4 ? "argument --pinned.unmap_timeout"
                                                                  : set & 2
                                                                      ? "environment HOLDFAST_PINNED_UNMAP_TIMEOUT"
                                                                  : set & 1 ? "file f.toml:7"
                                                                            : "default");
    EXPECT_EQ(made->origin_text(option_id::pinned_scrub_on_free), "default");
  }
}

TEST(OptionsConfiguration, WhatIsWrongInAWeakerSourceIsSaidAllTheSame) {
  const std::string text =
      refused({{named(timeout, "3s")}, {named(timeout_variable, "soon")}, {in_file(timeout, "250", 12)}});
  EXPECT_NE(text.find("f.toml:12: pinned.unmap_timeout: '250' has no unit"), std::string::npos) << text;
  EXPECT_NE(text.find("HOLDFAST_PINNED_UNMAP_TIMEOUT: pinned.unmap_timeout: 'soon' is no duration"), std::string::npos)
      << text;
}

TEST(OptionsConfiguration, EveryOptionIsRefusedWithPlaceNameValueAndRangeFromEverySource) {
  for (const option_description& what : option_table()) {
    const std::string wrong = "\x7fwrong";
    const std::string name(what.name);
    for (const std::string& text :
         {refused({{}, {}, {in_file(what.name, wrong, 3)}}), refused({{}, {named(what.variable, wrong)}, {}}),
          refused({{named(what.name, wrong)}, {}, {}})}) {
      EXPECT_NE(text.find(name), std::string::npos) << text;
      EXPECT_NE(text.find("'?wrong'"), std::string::npos) << text;
      EXPECT_NE(text.find(range_text(what).substr(0, 4)), std::string::npos) << text;
    }
    EXPECT_TRUE(refused({{}, {}, {in_file(what.name, wrong, 3)}}).starts_with("f.toml:3: " + name + ": "));
    EXPECT_TRUE(refused({{}, {named(what.variable, wrong)}, {}}).starts_with(std::string(what.variable) + ": "));
    EXPECT_TRUE(refused({{named(what.name, wrong)}, {}, {}}).starts_with("--" + name + ": "));
  }
}

TEST(OptionsConfiguration, AnUnknownKeyIsAnErrorThatNamesTheNearest) {
  EXPECT_EQ(refused({{}, {}, {in_file("pinned.unmap_timeuot", "", 4)}}),
            "f.toml:4: there is no option 'pinned.unmap_timeuot'; the nearest is pinned.unmap_timeout\n");
  EXPECT_EQ(refused({{}, {}, {in_file("unmap_timeout", "", 1)}}),
            "f.toml:1: there is no option 'unmap_timeout'; the nearest is pinned.unmap_timeout\n");
  EXPECT_EQ(refused({{}, {}, {in_file("entirely.different_from_everything", "", 1)}}),
            "f.toml:1: there is no option 'entirely.different_from_everything'\n");
  EXPECT_EQ(refused({{named("pinned.scrub", "true")}, {}, {}}), "there is no option '--pinned.scrub'\n");
  EXPECT_EQ(refused({{named("pined.scrub_on_free", "true")}, {}, {}}),
            "there is no option '--pined.scrub_on_free'; the nearest is --pinned.scrub_on_free\n");
}

TEST(OptionsConfiguration, AnUnknownVariableWithOurPrefixIsAWarning) {
  sources given;
  given.environment = {named("HOLDFAST_PINNED_SCRUB_ON_FREEE", "true"), named("HOLDFAST_JOBS", "4"),
                       named("PATH", "/bin"), named("HOLDFAST_CONFIG", "f.toml"),
                       named("HOLDFAST_PINNED_SCRUB_ON_FREE", "true")};
  const auto made = resolve(given);
  ASSERT_TRUE(made);
  ASSERT_EQ(made->warnings().size(), 1u);
  EXPECT_EQ(made->warnings().front(),
            "the variable 'HOLDFAST_PINNED_SCRUB_ON_FREEE' means nothing and is ignored; the nearest is "
            "HOLDFAST_PINNED_SCRUB_ON_FREE");
  EXPECT_EQ(made->number(option_id::pinned_scrub_on_free), 1u);
}

TEST(OptionsConfiguration, AnArgumentThatIsGivenTwiceIsRefused) {
  EXPECT_EQ(refused({{named(timeout, "1s"), named(timeout, "2s")}, {}, {}}),
            "--pinned.unmap_timeout: it is given twice\n");
}

TEST(OptionsConfiguration, TwoOptionsOutOfOrderAreBothNamedWithTheirOrigins) {
  EXPECT_EQ(
      refused({{named("pinned.max_arena_bytes", "1MiB")}, {}, {in_file("pinned.initial_arena_bytes", "2MiB", 9)}}),
      "pinned.initial_arena_bytes is '2MiB' (file f.toml:9), more than pinned.max_arena_bytes, which is '1MiB' "
      "(argument --pinned.max_arena_bytes)\n");
}

TEST(OptionsConfiguration, SentencesAreLimitedAndTheOthersCounted) {
  sources given;
  for (unsigned i = 0; i < 40; ++i) given.file.push_back(in_file("pinned.none", "", i));
  const auto made = resolve(given);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().sentences.size(), refusal::sentences_max);
  EXPECT_EQ(made.error().more, 40 - refusal::sentences_max);
}

TEST(OptionsConfiguration, TheStructsHaveTheDefaultsOfTheTable) {
  const configuration defaults;
  const runtime_options made = configured_runtime(defaults);
  const runtime_options plain;
  EXPECT_EQ(made.recorded_events, plain.recorded_events);
  EXPECT_EQ(made.recorded_level, plain.recorded_level);
#define HOLDFAST_PINNED_OPTION(name, member, ...) EXPECT_EQ(made.pinned.member, plain.pinned.member) << #name;
#include <holdfast/options/options.def>
  const ucx_device_options ucx = configured_ucx(defaults);
  const ucx_device_options plain_ucx;
#define HOLDFAST_TRANSPORT_OPTION(name, member, ...) \
  EXPECT_EQ(ucx.transport.member, plain_ucx.transport.member) << #name;
#include <holdfast/options/options.def>
  EXPECT_EQ(ucx.wire.transports, plain_ucx.wire.transports);
  EXPECT_EQ(ucx.wire.devices, plain_ucx.wire.devices);
  EXPECT_EQ(ucx.wire.fork_policy, plain_ucx.wire.fork_policy);
  EXPECT_EQ(ucx.library, plain_ucx.library);
  EXPECT_TRUE(pinned::validate(made.pinned));
  EXPECT_TRUE(transport::validate(ucx.transport));
}

TEST(OptionsConfiguration, WhatIsConfiguredArrivesInTheStructs) {
  sources given;
  given.arguments = {named("pinned.arena_reclaim_after", "3s"),   named("transport.listen_address", "[::1]:0"),
                     named("transport.progress_spin", "1ms"),     named("runtime.recorded_level", "warn"),
                     named("transport.transports", "tcp,self"),   named("pinned.scrub_on_free", "true"),
                     named("transport.devices", "eth0, mlx5_0:1")};
  const auto read = resolve(given);
  ASSERT_TRUE(read) << all_of(read.error());
  EXPECT_EQ(configured_runtime(*read).pinned.arena_reclaim_after_ns, 3'000'000'000);
  EXPECT_TRUE(configured_runtime(*read).pinned.scrub_on_free);
  EXPECT_EQ(configured_runtime(*read).recorded_level, event_level::warn);
  EXPECT_EQ(configured_ucx(*read).transport.listen_address, "[::1]:0");
  EXPECT_EQ(configured_ucx(*read).transport.progress_spin, std::chrono::milliseconds(1));
  EXPECT_EQ(configured_ucx(*read).wire.transports, "tcp,self");
  EXPECT_EQ(configured_ucx(*read).wire.devices, "eth0,mlx5_0:1");
}

TEST(OptionsConfiguration, GranulesAreThoseOfPinnedMemory) {
  EXPECT_EQ(description_of(option_id::pinned_initial_arena_bytes).low, pinned::granule_bytes);
  EXPECT_EQ(description_of(option_id::pinned_max_arena_bytes).high, pinned::granules_max * pinned::granule_bytes);
  EXPECT_EQ(description_of(option_id::pinned_arena_reclaim_after).initial.number,
            static_cast<std::uint64_t>(pinned::reclaim_never));
}

// Each member that is a number, one below and one above its limits.
TEST(OptionsConfiguration, StructsAreHeldToTheLimitsOfTheTable) {
  const auto outside = [](option_id which, std::uint64_t value) {
    const auto checked = check_number(which, "test", "member", value);
    return !checked && checked.error().code == error_code::out_of_range &&
           std::string_view(checked.error().words).starts_with("member ") && checked.error().numbers[0] == value;
  };
  for (std::size_t i = 0; i < option_table().size(); ++i) {
    const option_description& what = option_table()[i];
    const auto which = static_cast<option_id>(i);
    if (!is_number(what.kind)) continue;
    EXPECT_TRUE(check_number(which, "test", "member", what.low)) << what.name;
    EXPECT_TRUE(check_number(which, "test", "member", what.high)) << what.name;
    if (what.low > 0) {
      EXPECT_TRUE(outside(which, what.low - 1)) << what.name;
    }
    if (what.high < UINT64_MAX) {
      EXPECT_TRUE(outside(which, what.high + 1)) << what.name;
    }
  }
  transport::settings values;
  values.progress_spin = std::chrono::milliseconds(-1);
  const auto refused = transport::validate(values);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(std::string_view(refused.error().words).starts_with("progress_spin ")) << refused.error().words;
  values = {};
  values.listen_address = "";
  EXPECT_FALSE(transport::validate(values));
  values = {};
  values.epoch = 0;
  EXPECT_FALSE(transport::validate(values));
}

}  // namespace
}  // namespace holdfast
