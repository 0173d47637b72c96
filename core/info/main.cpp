// holdfast-info: what is here, and which options are in force.
#include <holdfast/platform/abi.hpp>

#include "info/findings.hpp"
#include "info/program.hpp"
#include "tool/output.hpp"
#include "tool/program.hpp"

#include <holdfast/environment.hpp>

#include <cstdio>
#include <exception>

namespace {

constexpr int exit_usage = 2;

int run(const holdfast::tool::command_line& given) {
  auto read = holdfast::read_configuration(given.overrides());
  if (!read) {
    for (const std::string& sentence : read.error().sentences)
      std::fprintf(stderr, "holdfast-info: %s\n", sentence.c_str());
    if (read.error().more != 0) std::fprintf(stderr, "holdfast-info: and %zu more\n", read.error().more);
    return exit_usage;
  }
  std::FILE* const out = holdfast::tool::take_standard_output();
  const holdfast::info::findings all = holdfast::info::find(std::move(*read));
  const std::string text = given.has("--json") ? to_json(all) : to_text(all);
  if (std::fputs(text.c_str(), out) < 0 || std::fflush(out) != 0) {
    std::fprintf(stderr, "holdfast-info: standard output cannot be written\n");
    return exit_usage;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto given = holdfast::tool::command_line::parse(holdfast::info::described_program, argc, argv);
    return given ? run(*given) : 0;
  } catch (const holdfast::tool::usage_error& e) {
    std::fprintf(stderr, "holdfast-info: %s\n", e.sentence.c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "holdfast-info: %s\n", e.what());
  }
  return exit_usage;
}
