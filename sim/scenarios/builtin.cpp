#include <sim/scenarios/builtin.hpp>

#include <sim/scenarios/scenario.hpp>

namespace holdfast::sim {

void add_builtin_scenarios() {
  static bool added = false;
  if (added) return;
  added = true;
  add_pinned_scenarios();
  add_get_scenarios();
}

}  // namespace holdfast::sim
