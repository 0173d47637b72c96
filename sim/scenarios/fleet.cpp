#include <sim/scenarios/fleet.hpp>

#include <properties/invariants/looks.hpp>
#include <sim/drivers/ucp_settings.hpp>
#include <sim/hardware/fabric.hpp>
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
    {"declare_dead", {}, {"host"}, &fleet_ops::declare_dead},
    {"fill", {"slot", "seed"}, {}, &by_user<&pool_user::fill>},
    {"free", {"slot"}, {}, &by_user<&pool_user::free>},
    {"get", {"slot"}, {"name"}, &fleet_ops::get},
    {"get_start", {"slot"}, {"name"}, &fleet_ops::get_start},
    {"heal", {}, {"host", "to"}, &fleet_ops::heal},
    {"partition", {}, {"host", "to"}, &fleet_ops::partition},
    {"pause", {}, {"host"}, &fleet_ops::pause},
    {"publish", {"slot"}, {"name"}, &fleet_ops::publish},
    {"restart", {}, {"host"}, &fleet_ops::restart},
    {"resume", {}, {"host"}, &fleet_ops::resume},
    {"revoke", {}, {"host"}, &fleet_ops::revoke},
    {"shutdown", {}, {}, &fleet_ops::shutdown},
    {"sleep", {"ns"}, {}, &by_user<&pool_user::sleep>},
    {"slow", {"ns"}, {"host", "to"}, &fleet_ops::slow},
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
    if (!need.empty() && !step.numbers.contains(std::string(need)))
      return "it needs the number \"" + std::string(need) + "\"";
  for (const std::string_view need : known->words)
    if (!need.empty() && !step.words.contains(std::string(need)))
      return "it needs the word \"" + std::string(need) + "\"";
  if (auto wrong = pool_user::inspect(step)) return wrong;
  const auto known_host = [this](const std::string& name) {
    return std::find(settings.hosts.begin(), settings.hosts.end(), name) != settings.hosts.end();
  };
  for (const char* const word : {"host", "to"})
    if (const auto named = step.words.find(word); named != step.words.end() && !known_host(named->second))
      return "there is no host \"" + named->second + "\"";
  if (!known_host(step.who.substr(0, step.who.find('/')))) return "there is no such host";
  return std::nullopt;
}

step_result fleet::execute(host& h, const op& step, std::uint64_t) {
  return find_verb(step.what)->run(*this, *nodes.at(h.name()), step);
}

void fleet::on_event(world&, const logged_event& e) {
  if (is_hardware(e.kind)) return;
  // A peer whose library does not return serves nobody any more, and says so to nobody.
  if (e.kind == holdfast::event_id::teardown_hung) the_world.excuse_waiting();
  const auto& kind = describe(e.kind);
  if (kind.subject != "ledger") return;
  for (unsigned i = 0; i < e.field_count; ++i)
    if (kind.fields[i] == "charged:bytes") charged_by_events[e.host] = e.fields[i];
}

void fleet::watch_ledger(host& h) {
  if (!watched.insert(h.name()).second) return;
  the_world.at_quiet_point(h, holdfast::lock_ranks::base_ledger.rank, [this, &h] {
    const auto node = nodes.find(h.name());
    if (node == nodes.end()) return;
    const std::uint64_t books = node->second->user.pool->registered_bytes();
    const std::uint64_t told = charged_by_events[h.index()];
    invariants::look_at_gauge(the_world, h.index(), books);
    if (books != told)
      the_world.violate("PM-I7", h.name() + ": the ledger has " + std::to_string(books) +
                                     " bytes charged, its events say " + std::to_string(told));
  });
}

void fleet::host_started(const std::string& name) {
  if (!starting.erase(name) || !starting.empty()) return;
  if (settings.calm_start) the_world.begin_trouble();
  everyone_started.open(the_world);
}

void fleet::host_left(const std::string& name) {
  if (!working.erase(name) || !working.empty()) return;
  end_trouble();
  the_world.expect_end_within(settings.progress_ns);
  everyone_done.open(the_world);
}

// However it comes, by an op or by a planned fault: nobody may wait for a host that is gone.
void fleet::host_crashed(host& h) {
  const std::string& name = h.name();
  nodes.erase(name);
  charged_by_events.erase(h.index());
  listening_host& here = listening.at(name);
  here.failed = true;
  here.there.open(the_world);
  // Its number is that of the life that it may begin next.
  drop_from_board(h, h.life());
  host_started(name);
  host_left(name);
  host_ended(name);
}

void fleet::drop_from_board(const host& owner, std::uint32_t next_life) {
  const auto publishes = [](const op& step, const std::string& name) {
    const auto named = step.words.find("name");
    return step.what == "publish" && named != step.words.end() && named->second == name;
  };
  for (const op& step : owned_plan.ops) {
    const auto named = step.words.find("name");
    if (step.what != "publish" || named == step.words.end()) continue;
    published& entry = board[named->second];
    if (entry.there.is_open()) continue;
    const bool may_come = std::ranges::any_of(settings.hosts, [&](const std::string& other) {
      const std::uint32_t last =
          work->last_life_with(other, [&](const op& each) { return publishes(each, named->second); });
      return last != 0 && last >= (other == owner.name() ? next_life : the_world.find_host(other)->life());
    });
    if (!may_come) declare_absent(entry);
  }
}

void fleet::declare_absent(published& entry) {
  entry.absent = true;
  entry.there.open(the_world);
}

void fleet::host_returns(host& h) {
  // Nobody is left for whom it could do anything.
  if (everyone_done.is_open()) return;
  const std::string& name = h.name();
  lanes_done[name] = latch{};
  listening.at(name).failed = false;
  listening.at(name).there = latch{};
  working.insert(name);
  up.insert(name);
  run(h);
}

// The crash may come before the program's first step.
void fleet::run(host& h) {
  h.on_crash([this, &h] { host_crashed(h); });
  h.spawn("main", [this, &h] { run_node(*this, h); });
}

// Who was stopped for good is ended when everybody else has: until then others may have business with his memory.
void fleet::host_ended(const std::string& name) {
  if (!up.erase(name)) return;
  for (const std::string& other : up)
    if (!the_world.calm() || !the_world.find_host(other)->paused()) return;
  for (const std::string& other : up) {
    host& stopped = *the_world.find_host(other);
    stopped.at(the_world.now(), [&stopped] { stopped.crash(); });
  }
}

void fleet::end_trouble() {
  if (trouble_ended) return;
  trouble_ended = true;
  the_world.begin_calm();
  the_world.expect_end_within(settings.patience_ns + settings.progress_ns);
  if (!the_world.waiting_excused()) return;
  fabric& links = fabric::of(the_world);
  for (const auto& from : the_world.hosts())
    for (const auto& to : the_world.hosts()) {
      if (from == to) continue;
      links.heal(*from, *to);
      links.slow(*from, *to, 0);
    }
  for (const auto& h : the_world.hosts()) {
    if (!h->paused()) continue;
    if (std::ranges::find(settings.may_stay_dead, h->name()) == settings.may_stay_dead.end())
      h->resume();
    else
      host_left(h->name());
  }
}

void fleet::lose_patience() {
  for (auto& [name, entry] : board)
    if (!entry.there.is_open()) declare_absent(entry);
  for (auto& [name, other] : listening) {
    if (other.there.is_open()) continue;
    other.failed = true;
    other.there.open(the_world);
  }
  patience_lost.open(the_world);
}

std::expected<std::shared_ptr<void>, std::string> start_fleet(world& w, const fleet_settings& how, const plan& what) {
  kernel_scope kernel;
  auto made = std::make_shared<fleet>(w, how);
  made->owned_plan = what;
  auto work = workload::make(made->owned_plan, *made);
  if (!work) return std::unexpected(work.error());
  made->work.emplace(std::move(*work));
  for (const std::string& name : how.hosts) {
    made->starting.insert(name);
    made->working.insert(name);
    made->up.insert(name);
    made->listening[name];
    made->lanes_done[name];
  }
  w.attach(*made);
  w.expect_calm();
  if (how.calm_start) w.begin_calm();
  for (const std::string& name : how.hosts) {
    host& h = w.add_host(name);
    if (how.one_machine) fabric::of(w).place(h, 1);
    if (std::ranges::find(how.with_card, name) != how.with_card.end()) ucp_settings_of(h).rdma = true;
    if (how.library_batch != 0) ucp_settings_of(h).progress_batch = how.library_batch;
    if (how.get_bytes_max != 0) ucp_settings_of(h).segment_bytes = how.get_bytes_max;
    h.on_restart([f = made.get(), &h] { f->host_returns(h); });
    made->run(h);
  }
  w.at_patience(how.trouble_ns, [f = made.get()] { f->end_trouble(); });
  w.at_patience(how.trouble_ns + how.patience_ns, [f = made.get()] { f->lose_patience(); });
  return made;
}

op make_op(std::string who, std::string what, std::map<std::string, std::int64_t> numbers,
           std::map<std::string, std::string> words) {
  return {std::move(who), std::move(what), std::move(numbers), std::move(words)};
}

}  // namespace holdfast::sim
