// Names on the command line, looked up.
//
// Threading   One thread. Failure: `usage_error` that says what there is.
#pragma once

#include <sim/campaign/campaign.hpp>
#include <sim/cli/arguments.hpp>

#include <string>
#include <vector>

namespace holdfast::sim {

const scenario& scenario_named(const std::string& name);
/// What of `given` a scenario has, completed. An error if it has one of them and the value is out of range.
campaign_job job_for(const scenario& what, const parameters& given);
/// An error if no job has the parameter at all.
std::vector<campaign_job> jobs_for(const std::vector<const scenario*>& scenarios, const parameters& given);
/// Settings that campaign, explore and list share: checks, models, workers.
campaign_settings base_settings();

}  // namespace holdfast::sim
