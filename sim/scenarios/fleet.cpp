#include <sim/scenarios/fleet.hpp>

#include <properties/invariants/looks.hpp>
#include <sim/scenarios/fleet_node.hpp>

#include <holdfast/base/lock_ranks.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace holdfast::sim {

namespace {

struct verb {
  std::string_view name;
  std::array<std::string_view, 2> numbers;  // required
  std::array<std::string_view, 2> words;    // required
  step_result (*run)(fleet&, fleet_node&, const op&);
};

template <step_result (pool_user::*Do)(const op&)>
step_result by_user(fleet&, fleet_node& node, const op& step) {
  return (node.user.*Do)(step);
}

// One table: what an op needs, and what it does.
constexpr verb verbs[] = {
    {"alloc", {"slot", "bytes"}, {}, &by_user<&pool_user::alloc>},
    {"alloc_start", {"slot", "bytes"}, {}, &by_user<&pool_user::alloc_start>},
    {"await", {"slot"}, {}, &by_user<&pool_user::await>},
    {"cancel", {"slot"}, {}, &by_user<&pool_user::cancel>},
    {"check", {"slot"}, {}, &by_user<&pool_user::check>},
    {"close", {}, {"host"}, &fleet_ops::close},
    {"connect", {}, {"host"}, &fleet_ops::connect},
    {"crash", {}, {"host"}, &fleet_ops::crash},
    {"fill", {"slot", "seed"}, {}, &by_user<&pool_user::fill>},
    {"free", {"slot"}, {}, &by_user<&pool_user::free>},
    {"get", {"slot"}, {"name"}, &fleet_ops::get},
    {"get_start", {"slot"}, {"name"}, &fleet_ops::get_start},
    {"pause", {}, {"host"}, &fleet_ops::pause},
    {"publish", {"slot"}, {"name"}, &fleet_ops::publish},
    {"resume", {}, {"host"}, &fleet_ops::resume},
    {"shutdown", {}, {}, &fleet_ops::shutdown},
    {"sleep", {"ns"}, {}, &by_user<&pool_user::sleep>},
    {"try_alloc", {"slot", "bytes"}, {}, &by_user<&pool_user::try_alloc>},
    {"wait", {}, {"name"}, &fleet_ops::wait},
};

const verb* find_verb(std::string_view name) {
  const auto found = std::find_if(std::begin(verbs), std::end(verbs), [name](const verb& v) { return v.name == name; });
  return found == std::end(verbs) ? nullptr : found;
}

}  // namespace

std::optional<std::string> fleet::inspect(const op& step) const {
  const verb* const known = find_verb(step.what);
  if (known == nullptr) {
    std::string names;
    for (const verb& v : verbs) names += (names.empty() ? "" : ", ") + std::string(v.name);
    return "there is no such step; there are " + names;
  }
  for (const std::string_view need : known->numbers)
    if (!need.empty() && !step.numbers.contains(std::string(need))) return "it needs the number \"" + std::string(need) + "\"";
  for (const std::string_view need : known->words)
    if (!need.empty() && !step.words.contains(std::string(need))) return "it needs the word \"" + std::string(need) + "\"";
  if (auto wrong = pool_user::inspect(step)) return wrong;
  const auto known_host = [this](const std::string& name) {
    return std::find(settings.hosts.begin(), settings.hosts.end(), name) != settings.hosts.end();
  };
  if (const auto named = step.words.find("host"); named != step.words.end() && !known_host(named->second))
    return "there is no host \"" + named->second + "\"";
  if (!known_host(step.who.substr(0, step.who.find('/')))) return "there is no such host";
  return std::nullopt;
}

step_result fleet::execute(host& h, const op& step, std::uint64_t) {
  return find_verb(step.what)->run(*this, *nodes.at(h.name()), step);
}

void fleet::on_event(world&, const logged_event& e) {
  if (is_hardware(e.kind)) return;
  const auto& kind = describe(e.kind);
  if (kind.subject != "ledger") return;
  for (unsigned i = 0; i < e.field_count; ++i)
    if (kind.fields[i] == "charged:bytes") charged_by_events[e.host] = e.fields[i];
}

void fleet::watch_ledger(host& h) {
  the_world.at_quiet_point(h, holdfast::lock_ranks::base_ledger.rank, [this, &h] {
    const auto node = nodes.find(h.name());
    if (node == nodes.end()) return;
    const std::uint64_t books = node->second->user.pool->registered_bytes();
    const std::uint64_t told = charged_by_events[h.index()];
    invariants::look_at_gauge(the_world, h.index(), books);
    if (books != told)
      the_world.violate("PM-I7", h.name() + ": the ledger has " + std::to_string(books) + " bytes charged, its events say " +
                                     std::to_string(told));
  });
}

void fleet::host_started() {
  if (++started != settings.hosts.size()) return;
  if (settings.calm_start) the_world.begin_trouble();
  everyone_started.open(the_world);
}

void fleet::host_left(const std::string& name) {
  if (!working.erase(name)) return;
  if (working.empty()) {
    the_world.begin_calm();
    everyone_done.open(the_world);
  }
}

std::expected<std::shared_ptr<void>, std::string> start_fleet(world& w, const fleet_settings& how, const plan& what) {
  kernel_scope kernel;
  auto made = std::make_shared<fleet>(w, how);
  made->owned_plan = what;
  auto work = workload::make(made->owned_plan, *made);
  if (!work) return std::unexpected(work.error());
  made->work.emplace(std::move(*work));
  for (const std::string& name : how.hosts) {
    made->working.insert(name);
    made->listening[name];
    made->lanes_done[name];
  }
  w.attach(*made);
  if (how.calm_start) w.begin_calm();
  for (const std::string& name : how.hosts) {
    host& h = w.add_host(name);
    h.spawn("main", [f = made.get(), &h] { run_node(*f, h); });
  }
  return made;
}

op make_op(std::string who, std::string what, std::map<std::string, std::int64_t> numbers,
           std::map<std::string, std::string> words) {
  return {std::move(who), std::move(what), std::move(numbers), std::move(words)};
}

}  // namespace holdfast::sim
