// Proves that options files are read as what stands in them, with the lines of what does not belong there; and that a
// runtime made from its surroundings has the options of environment, file and arguments, or does not come to be.
#include <holdfast/platform/abi.hpp>

#include <holdfast/environment.hpp>

#include <environment/toml_file.hpp>
#include <holdfast/base/block.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace holdfast {
namespace {

using options::option_id;

std::map<std::string, std::string> values_in(std::string_view text) {
  std::map<std::string, std::string> out;
  const auto read = options::read_toml(text, "f.toml");
  EXPECT_TRUE(read) << text;
  if (read)
    for (const options::assignment& one : *read) out[one.name] = one.value + "@" + std::to_string(one.line);
  return out;
}

std::string refused(std::string_view text) {
  const auto read = options::read_toml(text, "f.toml");
  if (read) return "it was read";
  std::string out;
  for (const std::string& sentence : read.error().sentences) out += sentence + "\n";
  return out;
}

TEST(OptionsFile, ValuesOfEveryKindAreReadWithTheirLines) {
  const auto found = values_in(
      "# comment\n"
      "pinned.scrub_on_free = true\n"
      "[transport]\n"
      "transports = [\"tcp\", \"self\"]\n"
      "max_keys = 0x10\n"
      "listen_address = '[::1]:0'\n"
      "connect_timeout = \"5s\"\n"
      "[runtime]\n");
  EXPECT_EQ(found, (std::map<std::string, std::string>{{"pinned.scrub_on_free", "true@2"},
                                                       {"transport.transports", "tcp,self@4"},
                                                       {"transport.max_keys", "16@5"},
                                                       {"transport.listen_address", "[::1]:0@6"},
                                                       {"transport.connect_timeout", "5s@7"}}));
}

TEST(OptionsFile, WhatHasNoPlaceIsPassedOnForItsName) {
  const auto found = values_in("x = 1\n[pined]\n[pinned.deeper]\ny = 2\n[[transport]]\nmax_keys = 3\n");
  EXPECT_EQ(found, (std::map<std::string, std::string>{
                       {"x", "@1"}, {"pined", "@2"}, {"pinned.deeper.y", "@4"}, {"transport", "@5"}}));
}

TEST(OptionsFile, ValuesOfTheWrongKindAreRefusedWithLineAndName) {
  EXPECT_EQ(refused("[transport]\nlisten_address = 7\n"),
            "f.toml:2: transport.listen_address: needs a text in quotes\n");
  EXPECT_TRUE(refused("[transport]\ntransports = 7\n").starts_with("f.toml:2: transport.transports: needs a list"));
  EXPECT_TRUE(
      refused("[transport]\ntransports = ['a,b']\n").starts_with("f.toml:2: transport.transports: has an entry"));
  EXPECT_TRUE(refused("[transport]\nmax_keys = [1]\n").starts_with("f.toml:2: transport.max_keys: is no list"));
  EXPECT_TRUE(
      refused("[transport]\nmax_keys = 1.5\n").starts_with("f.toml:2: transport.max_keys: has a value of a kind"));
  EXPECT_TRUE(
      refused("[pinned]\nunmap_timeout = 07:32:00\n").starts_with("f.toml:2: pinned.unmap_timeout: has a value"));
}

TEST(OptionsFile, WhatIsNoTomlIsRefusedWithItsLine) {
  for (const std::string_view text :
       {"\n[pinned\n", "\n[,\n", "\n[[[a]]]\n", "\na = \n", "\n= 1\n", "\n\x01\n", "\na = 'b\n"})
    EXPECT_TRUE(refused(text).starts_with("f.toml:2: ") || refused(text).starts_with("f.toml:3: "))
        << text << refused(text);
  EXPECT_TRUE(refused("a = 1\na = 2\n").starts_with("f.toml:2: "));
  EXPECT_TRUE(refused("\n" + std::string(options::toml_line_bytes_max + 1, 'a')).starts_with("f.toml:2: is longer"));
  std::string large;
  while (large.size() <= options::toml_bytes_max) large += "# nothing\n";
  EXPECT_TRUE(refused(large).starts_with("f.toml: is larger"));
}

class FromEnvironment : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/holdfast-options-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    ::setenv("HOLDFAST_CONFIG", (directory_ / "f.toml").c_str(), 1);
    write("[runtime]\nbackend = \"host\"\n");
  }
  void TearDown() override {
    for (const char* variable :
         {"HOLDFAST_CONFIG", "HOLDFAST_PINNED_REGISTERED_BYTES_BUDGET", "HOLDFAST_PINNED_UNMAP_TIMEOUT"})
      ::unsetenv(variable);
    std::filesystem::remove_all(directory_);
  }
  void write(std::string_view text) const { std::ofstream(directory_ / "f.toml") << text; }

  std::filesystem::path directory_;
};

TEST_F(FromEnvironment, ARuntimeRunsWithTheOptionsThatWereGiven) {
  write(
      "[runtime]\nbackend = \"host\"\n[pinned]\ninitial_arena_bytes = \"1MiB\"\nregistered_bytes_budget = \"2MiB\"\n");
  ::setenv("HOLDFAST_PINNED_REGISTERED_BYTES_BUDGET", "1MiB", 1);
  platform::host host;
  auto made = from_environment(host, {{"pinned.dedicated_arena_min", "4MiB"}});
  ASSERT_TRUE(made) << made.error().text();
  {
    const auto fits = made->pinned().async_alloc(std::size_t{1} << 19, block);
    ASSERT_TRUE(fits) << fits.error().text();
    EXPECT_EQ(made->pinned().registered_bytes(), std::uint64_t{1} << 20);
    const auto beyond = made->pinned().async_alloc(std::size_t{3} << 19, block);
    ASSERT_FALSE(beyond);
    EXPECT_EQ(beyond.error().code, error_code::budget_exceeded);
  }
  const auto report = made->async_shutdown(made->now() + std::chrono::seconds(5), block);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->clean()) << report->to_json();
  EXPECT_EQ(made->peers(), nullptr);
}

TEST_F(FromEnvironment, WithWrongOptionsThereIsNoRuntimeAndEverySourceIsQuoted) {
  write("[runtime]\nbackend = \"moon\"\n");
  ::setenv("HOLDFAST_PINNED_UNMAP_TIMEOUT", "250", 1);
  platform::host host;
  const auto made = from_environment(host);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::invalid_argument);
  const auto read = read_configuration({{"pinned.none", "1"}});
  ASSERT_FALSE(read);
  ASSERT_EQ(read.error().sentences.size(), 3u);
  EXPECT_NE(read.error().sentences[0].find("f.toml:2: runtime.backend: 'moon' is none of auto, ucx or host"),
            std::string::npos);
  EXPECT_NE(read.error().sentences[1].find("'250' has no unit"), std::string::npos);
  EXPECT_NE(read.error().sentences[2].find("--pinned.none"), std::string::npos);
}

TEST_F(FromEnvironment, AFileThatIsNamedHasToBeThere) {
  std::filesystem::remove(directory_ / "f.toml");
  const auto read = read_configuration();
  ASSERT_FALSE(read);
  ASSERT_EQ(read.error().sentences.size(), 1u);
  EXPECT_NE(read.error().sentences.front().find("cannot be opened"), std::string::npos);
  EXPECT_NE(read.error().sentences.front().find("HOLDFAST_CONFIG"), std::string::npos);
}

TEST_F(FromEnvironment, ALibraryThatIsAbsentIsMadeUpForOnlyWhereThatIsAllowed) {
  write("[transport]\nucx_library = \"/no/such/library.so\"\n");
  platform::host host;
  const auto refused = from_environment(host, {{"runtime.backend", "ucx"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::absent);
  auto made = from_environment(host);
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(made->peers(), nullptr);
  EXPECT_TRUE(made->async_shutdown(made->now() + std::chrono::seconds(5), block));
}

}  // namespace
}  // namespace holdfast
