// The scenarios of this tree, by the file that holds them. Called once each, by add_builtin_scenarios.
#pragma once

namespace holdfast::sim {

void add_pinned_scenarios();
void add_get_scenarios();

}  // namespace holdfast::sim
