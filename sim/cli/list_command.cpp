#include <sim/campaign/portfolio.hpp>
#include <sim/cli/commands.hpp>
#include <sim/cli/inputs.hpp>
#include <sim/cli/output.hpp>
#include <sim/faults/fault_plan.hpp>

#include <models/model.hpp>

#include <cstdio>

namespace holdfast::sim {

namespace {

using json = nlohmann::ordered_json;

// How often promises are exercised is known from runs alone; so a short campaign is made.
constexpr std::uint64_t sample_seeds = 20;

json scenarios() {
  json out = json::array();
  for (const scenario* s : all_scenarios()) {
    json values = json::array();
    for (const parameter& p : s->describe_parameters()) {
      values.push_back({{"name", p.name}, {"text", p.text}, {"initial", p.initial}, {"low", p.low}, {"high", p.high}});
    }
    out.push_back({{"name", s->name()}, {"text", s->text()}, {"parameters", std::move(values)}, {"small", s->small()}});
  }
  return out;
}

// Made once, if something that needs it is listed.
const campaign_summary& sampled() {
  static const campaign_summary made = [] {
    campaign_settings settings = base_settings();
    settings.jobs = jobs_for(all_scenarios(), {});
    settings.strategies = {std::string(portfolio)};
    settings.seed_last = sample_seeds;
    return run_campaign(settings, {});
  }();
  return made;
}

json invariants() {
  json out = json::array();
  for (const check_counts& c : sampled().checks) {
    out.push_back({{"id", c.id}, {"text", c.sentence}, {"evaluated", c.evaluated}, {"exercised", c.exercised}});
  }
  return out;
}

json reached() {
  json out = json::array();
  for (const mark_counts& m : sampled().marks) out.push_back({{"id", m.id}, {"text", m.sentence}, {"runs", m.runs}});
  return out;
}

json faults() {
  json out = json::array();
  for (const fault_point& p : all_fault_points()) {
    json kinds = json::array();
    for (std::string_view left = p.kinds;;) {
      const std::string_view kind = left.substr(0, left.find('|'));
      kinds.push_back(kind);
      if (kind.size() == left.size()) break;
      left.remove_prefix(kind.size() + 1);
    }
    out.push_back({{"name", p.name}, {"text", p.text}, {"kinds", std::move(kinds)}});
  }
  return out;
}

json models_listed() {
  json out = json::array();
  for (models::model* m : models::all()) {
    json transitions = json::array();
    for (const models::transition& t : m->transitions()) {
      transitions.push_back({{"source", t.source}, {"event", t.event}, {"guard", t.guard}, {"target", t.target}});
    }
    out.push_back({{"name", m->name()}, {"states", m->states()}, {"transitions", std::move(transitions)}});
  }
  return out;
}

std::string text_of(const json& entry, const char* field) { return entry.at(field).get<std::string>(); }

void print(const std::string& part, const json& entries) {
  std::printf("%s (%zu)\n", part.c_str(), entries.size());
  for (const json& e : entries) {
    if (part == "scenarios") {
      std::printf("  %-28s %s%s\n", text_of(e, "name").c_str(), text_of(e, "text").c_str(),
                  e.at("small").get<bool>() ? " (small)" : "");
      for (const json& p : e.at("parameters")) {
        std::printf("    %-26s %s; %s, from %s to %s\n", text_of(p, "name").c_str(), text_of(p, "text").c_str(),
                    p.at("initial").dump().c_str(), p.at("low").dump().c_str(), p.at("high").dump().c_str());
      }
    } else if (part == "invariants") {
      std::printf("  %-28s %s (evaluated %s, exercised %s)\n", text_of(e, "id").c_str(), text_of(e, "text").c_str(),
                  e.at("evaluated").dump().c_str(), e.at("exercised").dump().c_str());
    } else if (part == "reached") {
      std::printf("  %-28s %s (in %s runs)\n", text_of(e, "id").c_str(), text_of(e, "text").c_str(),
                  e.at("runs").dump().c_str());
    } else if (part == "faults") {
      std::string kinds;
      for (const json& k : e.at("kinds")) kinds += (kinds.empty() ? "" : ", ") + k.get<std::string>();
      std::printf("  %-28s %s [%s]\n", text_of(e, "name").c_str(), text_of(e, "text").c_str(), kinds.c_str());
    } else if (part == "models") {
      std::printf("  %-28s %zu states, %zu transitions\n", text_of(e, "name").c_str(), e.at("states").size(),
                  e.at("transitions").size());
    }
  }
}

}  // namespace

int list_command(const arguments& given) {
  constexpr struct {
    const char* name;
    json (*make)();
  } parts[] = {{"scenarios", scenarios},
               {"invariants", invariants},
               {"faults", faults},
               {"models", models_listed},
               {"reached", reached}};
  const std::string only = given.text("WHAT");
  json document;
  for (const auto& part : parts) {
    if (only.empty() || only == part.name) document[part.name] = part.make();
  }
  if (given.flag("--json")) {
    std::puts(dump(document).c_str());
    return exit_fine;
  }
  for (const auto& [name, entries] : document.items()) print(name, entries);
  if (document.contains("invariants") || document.contains("reached")) {
    std::printf("counts are of %llu seeds of every scenario\n", static_cast<unsigned long long>(sample_seeds));
  }
  return exit_fine;
}

}  // namespace holdfast::sim
