// The scenarios of this tree, by the file that holds them. Called once each, by add_builtin_scenarios.
#pragma once

namespace holdfast::sim {

void add_pinned_scenarios();
void add_get_scenarios();
void add_trouble_scenarios();
void add_revoke_scenarios();
void add_meeting_scenarios();
void add_rdma_scenarios();
void add_memory_scenarios();
void add_turns_scenarios();
void add_pinned_hazards();
void add_scripted_scenarios();
void add_base_gate_scenario();
void add_base_turn_scenario();
void add_base_ledger_scenario();
void add_base_extent_scenario();
void add_base_generation_scenario();
void add_base_wait_scenario();
void add_base_quarantine_scenarios();

}  // namespace holdfast::sim
