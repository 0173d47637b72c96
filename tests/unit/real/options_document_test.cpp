// docs/options.md and the man pages are the tables of options, written out. These tests fail when a page is stale; run
// them with HOLDFAST_UPDATE_DOCS=1 to write the pages again.
#include <holdfast/platform/abi.hpp>

#include <info/program.hpp>
#include <smoke/program.hpp>
#include <tool/pages.hpp>

#include <sim/cli/option_table.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace {

void expect_current(const std::string& name, const std::string& page) {
  const char* const root = std::getenv("HOLDFAST_SOURCE");
  ASSERT_NE(root, nullptr) << "set HOLDFAST_SOURCE to the root of the sources (ctest does)";
  const std::string path = std::string(root) + "/docs/" + name;
  if (std::getenv("HOLDFAST_UPDATE_DOCS") != nullptr) std::ofstream(path) << page;
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  // Not by EXPECT_EQ, which would print both.
  EXPECT_TRUE(text.str() == page) << path << " is stale; run this test with HOLDFAST_UPDATE_DOCS=1";
}

// holdfast-sim has commands, and a table of its own shape.
std::string simulator_manual() {
  using namespace holdfast::sim;
  holdfast::tool::man_page page("holdfast-sim", 1, "runs, explores and replays simulated worlds");
  page.section("synopsis");
  page.paragraph("holdfast-sim COMMAND [OPTION]...");
  page.section("description");
  page.paragraph(
      "Runs the core of Holdfast, the same sources that production runs, against simulated network cards, memory, "
      "threads and time. Every choice of a run is recorded; the same trace replays the same run.");
  for (const command_description& command : command_table) {
    const std::string mark = " " + std::string(command.name) + " ";
    page.section("holdfast-sim " + std::string(command.name));
    page.paragraph(std::string(command.text) + ".");
    for (const option_description& option : option_table) {
      if (option.commands.find(mark) == option.commands.npos) continue;
      std::string term(option.name);
      if (option.name.starts_with("--") && !option.value.empty()) term += " " + std::string(option.value);
      std::string text(option.text);
      if (!option.initial.empty()) text += " (otherwise " + std::string(option.initial) + ")";
      page.item(term, text);
    }
  }
  page.section("exit status");
  page.item("0", "no violation; of replay: every trace ended as its last line says");
  page.item("1", "a violation was found");
  page.item("2", "wrong usage or unreadable input; one line on standard error says what and where");
  page.item("3", "of replay: a run diverged from its trace, or ended otherwise than it says");
  page.item("4", "the same run was not the same twice");
  page.item("5", "nothing was violated, but something promised was not exercised");
  page.section("see also");
  page.paragraph("holdfast-info(1), holdfast-smoke(1)");
  return page.text();
}

TEST(OptionsDocument, ThePageIsWhatTheTableSays) { expect_current("options.md", holdfast::tool::options_document()); }

TEST(OptionsDocument, ManPagesAreWhatTheTablesSay) {
  expect_current("man/holdfast.toml.5", holdfast::tool::file_manual());
  expect_current("man/holdfast-info.1", holdfast::tool::manual(holdfast::info::described_program));
  expect_current("man/holdfast-smoke.1", holdfast::tool::manual(holdfast::smoke::described_program));
  expect_current("man/holdfast-sim.1", simulator_manual());
}

TEST(OptionsDocument, NoLineOfHelpIsWiderThanATerminal) {
  for (const auto& program : {holdfast::info::described_program, holdfast::smoke::described_program}) {
    std::istringstream lines(holdfast::tool::help_text(program));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

}  // namespace
