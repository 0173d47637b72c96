// holdfast-sim, with whatever scenarios were linked into it.
#include <sim/campaign/signals.hpp>
#include <sim/cli/commands.hpp>
#include <sim/scenarios/scenario.hpp>

#include <cstdio>
#include <exception>
#include <string>

int main(int argc, char** argv) {
  using namespace holdfast::sim;
  try {
    const arguments given = arguments::parse(argc, argv);
    if (given.command().empty()) return exit_fine;
    add_builtin_scenarios();
    listen_to_signals();
    constexpr struct {
      const char* name;
      int (*run)(const arguments&);
    } commands[] = {{"list", list_command},       {"run", run_command},       {"campaign", campaign_command},
                    {"explore", explore_command}, {"replay", replay_command}, {"models", models_command}};
    for (const auto& c : commands) {
      if (given.command() == c.name) return c.run(given);
    }
  } catch (const usage_error& e) {
    std::fprintf(stderr, "holdfast-sim: %s\n", e.sentence.c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "holdfast-sim: %s\n", e.what());
  }
  return exit_usage;
}
