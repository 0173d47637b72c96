#include <sim/cli/inputs.hpp>

#include <models/model.hpp>
#include <properties/invariants/registry.hpp>
#include <properties/marks/mark.hpp>

namespace holdfast::sim {

const scenario& scenario_named(const std::string& name) {
  if (const scenario* found = find_scenario(name)) return *found;
  std::string names;
  for (const scenario* s : all_scenarios()) names += (names.empty() ? "" : ", ") + std::string(s->name());
  throw usage_error{"there is no scenario '" + name + "'; there are " + names};
}

namespace {

bool has_parameter(const scenario& what, const std::string& name) {
  for (const parameter& p : what.describe_parameters()) {
    if (p.name == name) return true;
  }
  return false;
}

}  // namespace

campaign_job job_for(const scenario& what, const parameters& given) {
  auto values = complete_parameters(what, given);
  if (!values) throw usage_error{values.error()};
  return {&what, std::move(*values)};
}

std::vector<campaign_job> jobs_for(const std::vector<const scenario*>& scenarios, const parameters& given) {
  std::vector<campaign_job> out;
  for (const auto& [name, value] : given) {
    bool known = false;
    for (const scenario* s : scenarios) known = known || has_parameter(*s, name);
    // One scenario says itself what it has.
    if (!known && scenarios.size() == 1) job_for(*scenarios.front(), given);
    if (!known) throw usage_error{"none of these scenarios has a parameter '" + name + "'"};
  }
  for (const scenario* s : scenarios) {
    parameters own;
    for (const auto& [name, value] : given) {
      if (has_parameter(*s, name)) own[name] = value;
    }
    out.push_back(job_for(*s, own));
  }
  return out;
}

namespace {

// One for the process: what is counted in a worker's process stays there, and the worker publishes it.
marks::mark_watch& the_watch() {
  static auto* const made = new marks::mark_watch;
  return *made;
}

campaign_marks watched_marks() {
  campaign_marks out;
  for (const marks::reached_mark& mark : marks::all_marks()) {
    out.ids.push_back(mark.id);
    out.sentences.push_back(mark.sentence);
  }
  out.watch = &the_watch();
  out.begin = [] { the_watch().begin(); };
  out.end = [] {
    the_watch().count();
    return the_watch().counts();
  };
  return out;
}

}  // namespace

campaign_settings base_settings() {
  campaign_settings out;
  out.checks = invariants::all_checks();
  out.marks = watched_marks();
  for (models::model* m : models::all()) {
    for (const models::transition& t : m->transitions()) {
      std::string name = std::string(m->name()) + ": " + std::string(t.source) + " -- " + std::string(t.event);
      if (!t.guard.empty()) name += " [" + std::string(t.guard) + ']';
      out.gauges.names.push_back(name + " --> " + std::string(t.target));
    }
  }
  out.gauges.read = [] {
    std::vector<std::uint64_t> counts;
    for (models::model* m : models::all()) {
      for (const models::transition& t : m->transitions()) counts.push_back(t.taken);
    }
    return counts;
  };
  return out;
}

}  // namespace holdfast::sim
