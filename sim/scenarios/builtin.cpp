#include <sim/scenarios/builtin.hpp>

#include <sim/scenarios/scenario.hpp>

namespace holdfast::sim {

void add_builtin_scenarios() {
  static bool added = false;
  if (added) return;
  added = true;
  add_pinned_scenarios();
  add_get_scenarios();
  add_trouble_scenarios();
  add_revoke_scenarios();
  add_meeting_scenarios();
  add_rdma_scenarios();
  add_memory_scenarios();
  add_turns_scenarios();
  add_pinned_hazards();
  add_scripted_scenarios();
  add_base_gate_scenario();
  add_base_turn_scenario();
  add_base_ledger_scenario();
  add_base_extent_scenario();
  add_base_generation_scenario();
  add_base_wait_scenario();
  add_base_quarantine_scenarios();
}

}  // namespace holdfast::sim
