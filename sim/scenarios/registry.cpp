#include <sim/scenarios/scenario.hpp>

#include <algorithm>

namespace holdfast::sim {

namespace {
std::vector<std::unique_ptr<scenario>>& registered() {
  static auto* const made = new std::vector<std::unique_ptr<scenario>>;
  return *made;
}
}  // namespace

void add_scenario(std::unique_ptr<scenario> s) {
  auto& all = registered();
  const auto at = std::lower_bound(all.begin(), all.end(), s->name(),
                                   [](const auto& known, std::string_view name) { return known->name() < name; });
  all.insert(at, std::move(s));
}

scenario_registrar::scenario_registrar(std::unique_ptr<scenario> s) { add_scenario(std::move(s)); }

std::vector<const scenario*> all_scenarios() {
  std::vector<const scenario*> out;
  for (const auto& each : registered()) out.push_back(each.get());
  return out;
}

const scenario* find_scenario(std::string_view name) {
  for (const auto& each : registered())
    if (each->name() == name) return each.get();
  return nullptr;
}

}  // namespace holdfast::sim
