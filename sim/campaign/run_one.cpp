#include <sim/campaign/run_one.hpp>

#include <sim/faults/fault_plan.hpp>

#include <algorithm>

namespace holdfast::sim {

run_outcome run_one(const run_spec& spec, const plan& plan, strategy& chooser, const run_observers& observers) {
  run_outcome out;
  world_settings settings;
  settings.seed = spec.seed;
  settings.steps_max = spec.steps_max;
  world w(settings, chooser);
  if (auto error = fault_plan::of(w).install(plan.faults)) {
    out.error = std::move(error);
    return out;
  }
  if (observers.fault_sites != nullptr) fault_plan::of(w).collect_sites(*observers.fault_sites);
  for (check* c : observers.checks) w.attach(*c);
  for (listener* l : observers.listeners) w.attach(*l);
  // Destroyed before the world that it refers to.
  const auto started = spec.what->start(w, spec.values, plan);
  if (!started) {
    out.error = started.error();
    return out;
  }
  out.cut = w.run() == run_end::cut;
  out.wrong = w.violated();
  out.steps = w.step_count();
  out.choices = w.choice_count();
  out.events = w.event_count();
  out.time_ns = w.now();
  out.calm_expected = w.calm_expected();
  out.calm_reached = w.calm_reached();
  if (observers.fingerprint || out.wrong) out.fingerprint = w.fingerprint();
  if (observers.keep_indices || out.wrong) out.indices = w.choices();
  if (!plan.faults.empty()) out.struck = fault_plan::of(w).struck();
  return out;
}

std::expected<parameters, std::string> complete_parameters(const scenario& what, const parameters& given) {
  parameters out;
  const std::vector<parameter> known = what.describe_parameters();
  for (const parameter& p : known) {
    const auto found = given.find(p.name);
    const std::int64_t value = found == given.end() ? p.initial : found->second;
    if (value < p.low || value > p.high) {
      return std::unexpected("parameter '" + p.name + "' of scenario '" + std::string(what.name()) + "' is " +
                             std::to_string(value) + "; it goes from " + std::to_string(p.low) + " to " +
                             std::to_string(p.high));
    }
    out[p.name] = value;
  }
  for (const auto& [name, value] : given) {
    if (out.contains(name)) continue;
    std::string names;
    for (const parameter& p : known) names += (names.empty() ? "" : ", ") + p.name;
    return std::unexpected("scenario '" + std::string(what.name()) + "' has no parameter '" + name + "'; it has " +
                           (names.empty() ? "none" : names));
  }
  return out;
}

bool same_outcome(const run_outcome& a, const run_outcome& b) {
  const bool same_violation =
      a.wrong.has_value() == b.wrong.has_value() &&
      (!a.wrong || (a.wrong->invariant == b.wrong->invariant && a.wrong->message == b.wrong->message));
  return same_violation && a.steps == b.steps && a.choices == b.choices && a.events == b.events &&
         a.time_ns == b.time_ns && a.fingerprint == b.fingerprint;
}

}  // namespace holdfast::sim
