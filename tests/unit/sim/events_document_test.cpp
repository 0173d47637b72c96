// docs/events.md is the two event tables, written out. This test fails when the page is stale; run it with
// HOLDFAST_UPDATE_DOCS=1 to write the page again.
#include <sim/kernel/event.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace {

std::string section(std::string_view title, std::span<const holdfast::event_description> table) {
  constexpr const char* levels[] = {"trace", "debug", "info", "warn", "error"};
  std::ostringstream out;
  out << "\n## " << title << "\n\n| Event | Level | Subject | Says | Fields |\n| --- | --- | --- | --- | --- |\n";
  for (const auto& event : table) {
    out << "| `" << event.name << "` | " << levels[static_cast<unsigned>(event.level)] << " | " << event.subject
        << " | " << event.sentence << " |";
    for (unsigned i = 0; i < event.field_count; ++i) {
      std::string field(event.fields[i]);
      for (std::size_t bar = field.find('|'); bar != std::string::npos; bar = field.find('|', bar + 2))
        field.replace(bar, 1, "\\|");
      out << (i == 0 ? " `" : ", `") << field << "`";
    }
    out << " |\n";
  }
  return out.str();
}

std::string page() {
  return "# Events\n\nEvery event of the core (`core/holdfast/telemetry/events.def`) and of the simulated hardware "
         "(`sim/kernel/hardware_events.def`), generated from those tables by the test `EventsDocument`.\n\nA field is "
         "written as name and type: `id` a number issued by its owner, `bytes`, `granules` (4096 bytes), `count`, `ns` "
         "absolute nanoseconds of the host's clock, `status` a signed driver status, `flag`, or one of the names "
         "listed.\n" +
         section("Core", holdfast::event_table()) +
         section("Simulated hardware", holdfast::sim::hardware_event_table());
}

TEST(EventsDocument, ThePageIsWhatTheTablesSay) {
  const char* const root = std::getenv("HOLDFAST_SOURCE");
  ASSERT_NE(root, nullptr) << "set HOLDFAST_SOURCE to the root of the sources (ctest does)";
  const std::string path = std::string(root) + "/docs/events.md";
  if (std::getenv("HOLDFAST_UPDATE_DOCS") != nullptr) std::ofstream(path) << page();
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), page()) << path << " is stale; run this test with HOLDFAST_UPDATE_DOCS=1";
}

TEST(EventsDocument, NoNameStandsForTwoEvents) {
  std::set<std::string_view> names;
  for (const auto table : {holdfast::event_table(), holdfast::sim::hardware_event_table()})
    for (const auto& event : table) EXPECT_TRUE(names.insert(event.name).second) << event.name << " stands twice";
}

TEST(EventsDocument, EveryFieldHasANameAndAKnownType) {
  const std::set<std::string_view> types = {"id", "bytes", "granules", "count", "ns", "status", "flag"};
  for (const auto table : {holdfast::event_table(), holdfast::sim::hardware_event_table()})
    for (const auto& event : table)
      for (unsigned i = 0; i < event.field_count; ++i) {
        const std::string_view field = event.fields[i];
        const std::size_t colon = field.find(':');
        ASSERT_NE(colon, std::string_view::npos) << event.name << ": " << field;
        const std::string_view type = field.substr(colon + 1);
        EXPECT_TRUE(types.contains(type) || (type.starts_with("enum(") && type.ends_with(")")))
            << event.name << ": " << field;
      }
}

}  // namespace
