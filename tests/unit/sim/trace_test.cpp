// What is written is read back; what is too much is refused. The rest of the reader's strictness is tested through the
// program (tests/tools/sim_unreadable.py): here stand the round trip of every field and the limit on lines, which would
// be slow there.
#include <sim/trace/line_source.hpp>
#include <sim/trace/reader.hpp>
#include <sim/trace/writer.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <unistd.h>

namespace {

using namespace holdfast::sim;

class Traces : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("holdfast-trace-test-" + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const char* name) const { return directory_ / name; }

 private:
  std::filesystem::path directory_;
};

trace_file sample() {
  trace_file t;
  t.header = {"A \"title\"\n",
              "why \xe2\x82\xac",
              "scenario",
              {{"a", -5}, {"b", INT64_MAX}},
              UINT64_MAX,
              "random",
              {},
              "default",
              "written",
              "abc123",
              {"W-1", "PM-I5"},
              77};
  t.what.ops = {{"a/app-1", "get", {{"bytes", 65536}, {"low", INT64_MIN}}, {{"from", "b"}}},
                {"b/app-2", "put", {}, {}}};
  t.what.faults = {{"nic.register", "b", 3, 9, "delay", -1}};
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    if (i % 100 == 0) t.choices.labels.push_back("label " + std::to_string(i));
    if (i % trace_check_interval == 0) t.choices.checks.push_back(i * 2654435761u);
    t.choices.choices.push_back({i % 7, i / 100});
  }
  t.end = {trace_outcome::violation, "W-1", "message", 42, "", "PM-H7", trace_outcome::clean, 12, 34,
           std::string(32, 'a')};
  return t;
}

void expect_equal(const trace_file& a, const trace_file& b) {
  EXPECT_EQ(a.header.title, b.header.title);
  EXPECT_EQ(a.header.why, b.header.why);
  EXPECT_EQ(a.header.scenario, b.header.scenario);
  EXPECT_EQ(a.header.values, b.header.values);
  EXPECT_EQ(a.header.seed, b.header.seed);
  EXPECT_EQ(a.header.strategy, b.header.strategy);
  EXPECT_EQ(a.header.origin, b.header.origin);
  EXPECT_EQ(a.header.core, b.header.core);
  EXPECT_EQ(a.header.promises, b.header.promises);
  EXPECT_EQ(a.header.steps_max, b.header.steps_max);
  ASSERT_EQ(a.what.ops.size(), b.what.ops.size());
  for (std::size_t i = 0; i < a.what.ops.size(); ++i) {
    EXPECT_EQ(a.what.ops[i].who, b.what.ops[i].who);
    EXPECT_EQ(a.what.ops[i].what, b.what.ops[i].what);
    EXPECT_EQ(a.what.ops[i].numbers, b.what.ops[i].numbers);
    EXPECT_EQ(a.what.ops[i].words, b.what.ops[i].words);
  }
  ASSERT_EQ(a.what.faults.size(), b.what.faults.size());
  for (std::size_t i = 0; i < a.what.faults.size(); ++i) {
    EXPECT_EQ(a.what.faults[i].where, b.what.faults[i].where);
    EXPECT_EQ(a.what.faults[i].host, b.what.faults[i].host);
    EXPECT_EQ(a.what.faults[i].nth, b.what.faults[i].nth);
    EXPECT_EQ(a.what.faults[i].times, b.what.faults[i].times);
    EXPECT_EQ(a.what.faults[i].what, b.what.faults[i].what);
    EXPECT_EQ(a.what.faults[i].value, b.what.faults[i].value);
  }
  EXPECT_EQ(a.choices.labels, b.choices.labels);
  EXPECT_EQ(a.choices.checks, b.choices.checks);
  ASSERT_EQ(a.choices.choices.size(), b.choices.choices.size());
  for (std::size_t i = 0; i < a.choices.choices.size(); ++i) {
    ASSERT_EQ(a.choices.choices[i].index, b.choices.choices[i].index);
    ASSERT_EQ(a.choices.choices[i].label, b.choices.choices[i].label);
  }
  EXPECT_EQ(a.end.outcome, b.end.outcome);
  EXPECT_EQ(a.end.invariant, b.end.invariant);
  EXPECT_EQ(a.end.message, b.end.message);
  EXPECT_EQ(a.end.event, b.end.event);
  EXPECT_EQ(a.end.core, b.end.core);
  EXPECT_EQ(a.end.on_clean_core, b.end.on_clean_core);
  EXPECT_EQ(a.end.steps, b.end.steps);
  EXPECT_EQ(a.end.time_ns, b.end.time_ns);
  EXPECT_EQ(a.end.fingerprint, b.end.fingerprint);
}

TEST_F(Traces, AreReadBackAsTheyWereWritten) {
  for (const char* name : {"t.jsonl", "t.jsonl.zst"}) {
    const trace_file written = sample();
    ASSERT_EQ(write_trace(path(name), written, {}), std::nullopt);
    const auto read = read_trace(path(name));
    ASSERT_TRUE(read.has_value()) << read.error();
    expect_equal(written, *read);
  }
}

TEST_F(Traces, OfACrashAndACleanRunAreReadBack) {
  trace_file written = sample();
  written.end = {trace_outcome::crash, "", "", 0, "SIGSEGV", "clean", std::nullopt, 1, 2, ""};
  ASSERT_EQ(write_trace(path("t"), written, {}), std::nullopt);
  auto read = read_trace(path("t"));
  ASSERT_TRUE(read.has_value()) << read.error();
  EXPECT_EQ(read->end.signal, "SIGSEGV");
  EXPECT_EQ(read->end.fingerprint, "");
  written.end = {};
  ASSERT_EQ(write_trace(path("t"), written, {}), std::nullopt);
  read = read_trace(path("t"));
  ASSERT_TRUE(read.has_value()) << read.error();
  EXPECT_EQ(read->end.outcome, trace_outcome::clean);
}

TEST_F(Traces, AFileThatCannotBeWrittenLeavesNothing) {
  const auto error = write_trace(path("no/such/place"), sample(), {});
  ASSERT_TRUE(error.has_value());
  EXPECT_NE(error->find("no/such/place"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(path("x")).parent_path()));
}

TEST_F(Traces, HaveTenMillionLinesAtMost) {
  const std::string file = path("lines");
  std::FILE* out = std::fopen(file.c_str(), "wb");
  ASSERT_NE(out, nullptr);
  const std::string thousand(1000, '\n');
  for (int i = 0; i < 10'000; ++i) std::fwrite(thousand.data(), 1, thousand.size(), out);
  std::fclose(out);
  const auto read_all = [&file]() -> std::expected<std::uint64_t, std::string> {
    auto source = line_source::open(file);
    std::string_view line;
    for (;;) {
      const auto more = source->next(line);
      if (!more) return std::unexpected(more.error());
      if (!*more) return source->number();
    }
  };
  const auto most = read_all();
  ASSERT_TRUE(most.has_value()) << most.error();
  EXPECT_EQ(*most, 10'000'000u);
  out = std::fopen(file.c_str(), "ab");
  ASSERT_NE(out, nullptr);
  std::fputs("one more", out);
  std::fclose(out);
  const auto more = read_all();
  ASSERT_FALSE(more.has_value());
  EXPECT_NE(more.error().find(":10000001: "), std::string::npos) << more.error();
}

}  // namespace
