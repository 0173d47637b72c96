#include <sim/scenarios/scripted_stage.hpp>

#include <properties/invariants/looks.hpp>
#include <sim/kernel/fiber.hpp>
#include <sim/scenarios/pool_user.hpp>

#include <holdfast/base/block.hpp>
#include <holdfast/base/capacity_ledger.hpp>
#include <holdfast/base/frame_pool.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/base/task.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

namespace holdfast::sim {

namespace hf = holdfast;

namespace {

constexpr std::string_view host_name = "a";
constexpr std::uint64_t pool_id = 1, ledger_id = 1;
constexpr hf::peer_id peer{.worker_id = 9, .incarnation = 900};

// When `ns` from now is; negative: never.
std::int64_t after(const world& w, std::int64_t ns) { return ns < 0 ? INT64_MAX : w.now() + ns; }

hf::platform::time_point point_of(std::int64_t ns) {
  return ns == INT64_MAX ? hf::platform::never : hf::platform::time_point{hf::platform::duration{ns}};
}

/// The core of the host. Destroyed bottom-up: what others refer to comes first.
struct scripted_node {
  scripted_node(world& w, host& machine, const scripted_settings& how)
      : platform(machine, how.executor_threads),
        log(platform.clock()),
        frames(0),
        environment(platform.executor(), platform.clock(), log, frames),
        ledger(ledger_id, how.pool.registered_bytes_budget, log),
        user(w, machine) {}

  hf::platform::host platform;
  hf::event_log log;
  hf::frame_pool frames;
  hf::task_environment environment;
  hf::capacity_ledger ledger;
  std::optional<hf::pinned::memory> memory;
  pool_user user;
};

class scripted_stage final : public interpreter {
 public:
  scripted_stage(world& w, const scripted_settings& how, const plan& what) : world_(w), how_(how), plan_(what) {}

  std::optional<std::string> prepare();
  std::optional<std::string> inspect(const op& step) const override;
  step_result execute(host& h, const op& step, std::uint64_t number) override;

 private:
  struct verb {
    std::string_view name;
    std::string_view numbers[2];  // required
    step_result (*run)(scripted_stage&, const op&);
  };
  static const verb verbs[];
  static const verb* find_verb(std::string_view name);
  template <step_result (pool_user::*Do)(const op&)>
  static step_result by_user(scripted_stage& s, const op& step) {
    return (s.node_->user.*Do)(step);
  }

  void main(host& machine);
  void prepare_slots(scripted_node& node);
  void wait_patiently();
  void give_up();
  void end(host& machine);
  [[noreturn]] void exit_process(host& machine);
  void expect(bool held, std::string_view invariant, std::string_view sentence);

  step_result get(const op& step);
  step_result get_start(const op& step);
  step_result shut_down(std::int64_t deadline_ns);
  step_result release(std::int64_t deadline_ns);
  step_result snapshot();
  void recount(const std::vector<hf::pinned::arena_snapshot>& arenas, std::uint64_t& live, std::uint64_t& holds);

  world& world_;
  const scripted_settings how_;
  const plan plan_;
  std::optional<workload> work_;
  latch done_;
  latch patience_lost_;  // a fault keeps somebody waiting for ever
  latch never_;          // who waits here is stuck for good; in kernel memory, since nothing unwinds a fiber
  std::optional<scripted_backend> device_;
  scripted_node* node_ = nullptr;  // on the stack of the fiber "main"
  bool shutdown_begun_ = false;
  bool shutdown_ended_ = false;
  bool released_ = false;
  bool witnessed_ = false;
  bool abandoned_ = false;
  std::uint64_t spans_lost_ = 0;
};

const scripted_stage::verb scripted_stage::verbs[] = {
    {"abandon",
     {},
     [](scripted_stage& s, const op&) {
       s.abandoned_ = true;
       return step_result{};
     }},
    {"alloc", {"slot", "bytes"}, &by_user<&pool_user::alloc>},
    {"alloc_start", {"slot", "bytes"}, &by_user<&pool_user::alloc_start>},
    {"await", {"slot"}, &by_user<&pool_user::await>},
    {"cancel", {"slot"}, &by_user<&pool_user::cancel>},
    {"check", {"slot"}, &by_user<&pool_user::check>},
    {"fill", {"slot", "seed"}, &by_user<&pool_user::fill>},
    {"free", {"slot"}, &by_user<&pool_user::free>},
    {"get", {"slot", "seed"}, [](scripted_stage& s, const op& step) { return s.get(step); }},
    {"get_start", {"slot", "seed"}, [](scripted_stage& s, const op& step) { return s.get_start(step); }},
    {"reclaim",
     {},
     [](scripted_stage& s, const op&) { return step_result{s.node_->memory->reclaim_idle().arenas != 0, 0}; }},
    {"reference",
     {"slot"},
     [](scripted_stage& s, const op& step) {
       const pool_user::slot& named = s.node_->user.slot_of(step);
       return step_result{named.held && named.held.remote().has_value(), 0};
     }},
    {"release",
     {},
     [](scripted_stage& s, const op& step) { return s.release(step.number("deadline_ns", s.how_.teardown_ns)); }},
    {"shutdown",
     {},
     [](scripted_stage& s, const op& step) { return s.shut_down(step.number("deadline_ns", s.how_.shutdown_ns)); }},
    {"sleep", {"ns"}, &by_user<&pool_user::sleep>},
    {"snapshot", {}, [](scripted_stage& s, const op&) { return s.snapshot(); }},
    {"try_alloc", {"slot", "bytes"}, &by_user<&pool_user::try_alloc>},
};

const scripted_stage::verb* scripted_stage::find_verb(std::string_view name) {
  const auto found = std::ranges::find(verbs, name, &verb::name);
  return found == std::end(verbs) ? nullptr : found;
}

std::optional<std::string> scripted_stage::inspect(const op& step) const {
  const verb* const known = find_verb(step.what);
  if (known == nullptr) {
    std::string names;
    for (const verb& v : verbs) names += (names.empty() ? "" : ", ") + std::string(v.name);
    return "there is no such step; there are " + names;
  }
  for (const std::string_view need : known->numbers)
    if (!need.empty() && !step.numbers.contains(std::string(need)))
      return "it needs the number \"" + std::string(need) + "\"";
  if (step.who.substr(0, step.who.find('/')) != host_name) return "there is one host, \"a\"";
  return pool_user::inspect(step);
}

step_result scripted_stage::execute(host&, const op& step, std::uint64_t) {
  return find_verb(step.what)->run(*this, step);
}

std::optional<std::string> scripted_stage::prepare() {
  auto work = workload::make(plan_, *this);
  if (!work) return work.error();
  work_.emplace(std::move(*work));
  host& machine = world_.add_host(host_name);
  device_.emplace(machine, how_.device);
  machine.spawn("main", [this, &machine] { main(machine); });
  world_.at_patience(how_.give_up_ns, [this] { patience_lost_.open(world_); });
  return std::nullopt;
}

void scripted_stage::expect(bool held, std::string_view invariant, std::string_view sentence) {
  if (held) return;
  kernel_scope kernel;
  world_.violate(invariant, "not so: " + std::string(sentence));
}

void scripted_stage::main(host& machine) {
  if (how_.search_ops_only) world_.search(false);
  scripted_node node(world_, machine, how_);
  node_ = &node;
  device_->start(node.log);
  auto made =
      hf::pinned::memory::create(pool_id, node.platform.pages(), node.environment, node.ledger, *device_, how_.pool);
  if (made) {
    node.memory.emplace(std::move(*made));
    node.user.pool = &*node.memory;
    invariants::told_arena_sizes(world_, machine.index(), how_.pool.initial_arena_bytes, how_.pool.max_arena_bytes,
                                 memory_of(machine).page_bytes());
    world_.at_quiet_point(machine, hf::lock_ranks::base_ledger.rank, [this, &machine] {
      if (node_->memory) invariants::look_at_gauge(world_, machine.index(), node_->memory->registered_bytes());
    });
    if (how_.prepared != 0) prepare_slots(node);
    world_.search(true);
    work_->spawn(machine, done_);
    if (how_.patience_ns >= 0) wait_patiently();
    latch::wait_for_either(world_, done_, patience_lost_);
    if (!done_.is_open()) give_up();
    done_.wait(world_);
    if (how_.search_ops_only) world_.search(false);
  }
  end(machine);
}

// Faults are meant for the ops, and none strikes in the calm.
void scripted_stage::prepare_slots(scripted_node& node) {
  world_.begin_calm();
  for (std::int64_t slot = 0; slot < how_.prepared; ++slot)
    if (auto ready = node.memory->async_alloc(1, hf::block)) node.user.slots[slot].held = std::move(*ready);
  if (how_.prepared_dropped)
    for (std::int64_t slot = 0; slot < how_.prepared; ++slot) node.user.slots[slot].held.reset();
  world_.begin_trouble();
}

// A fault took away what is waited for: as a program would, it ends, and everybody must be told.
void scripted_stage::give_up() {
  constexpr std::int64_t bound_ns = 1'000'000;
  static_cast<void>(shut_down(how_.shutdown_ns < 0 ? bound_ns : how_.shutdown_ns));
  static_cast<void>(release(how_.teardown_ns < 0 ? bound_ns : how_.teardown_ns));
}

void scripted_stage::wait_patiently() {
  for (std::int64_t passed = 0; passed < 16 && !done_.is_open(); ++passed) sleep_for(world_, how_.patience_ns / 16);
  if (!done_.is_open()) give_up();
}

// What is left of this process may still be reached by a device: only its exit ends that.
void scripted_stage::exit_process(host& machine) {
  world_.at(world_.now(), [&machine] { machine.crash(); });
  for (;;) never_.wait(world_);
}

void scripted_stage::end(host& machine) {
  scripted_node& node = *node_;
  auto& slots = node.user.slots;
  for (std::size_t i = 0; i < std::size(slots); i += 2) slots[i] = {};
  if (node.memory && abandoned_ && !shutdown_begun_) {
    node.memory.reset();
    for (auto& slot : slots) slot = {};
    if (device_->tear_down(after(world_, how_.teardown_ns))) device_->finish();
    exit_process(machine);
  }
  if (node.memory) {
    // Who gave up waiting, or had no memory to, asks again.
    for (unsigned i = 0; i < 4 && !shutdown_ended_; ++i) static_cast<void>(shut_down(how_.shutdown_ns));
    expect(shutdown_ended_, "W-7", "a shutdown that is asked for often enough answers");
    static_cast<void>(snapshot());
  }
  static_cast<void>(release(how_.teardown_ns));
  if (!witnessed_) exit_process(machine);
  device_->finish();
  for (auto& slot : slots) slot = {};
  if (spans_lost_ != 0) exit_process(machine);
  node.memory.reset();
  node.platform.stop();
  device_->stop();
  expect(node.ledger.snapshot().charged_bytes == 0, "W-5", "nothing is charged after the witness settled everything");
  expect(node.frames.frames_out() == 0, "PM-I18", "every frame of a task is gone in the end");
}

step_result scripted_stage::get_start(const op& step) {
  pool_user::slot& into = node_->user.slot_of(step);
  const auto seed = static_cast<std::uint64_t>(step.number("seed"));
  const auto bytes = static_cast<std::uint64_t>(step.number("bytes", static_cast<std::int64_t>(into.held.size())));
  hf::remote_reference from = scripted_source(peer, seed, bytes);
  if (step.number("stale") != 0) ++from.incarnation;
  return node_->user.begin_get(into, peer, from, seed);
}

step_result scripted_stage::get(const op& step) {
  const step_result begun = get_start(step);
  return begun.ok ? node_->user.await(step) : begun;
}

step_result scripted_stage::shut_down(std::int64_t deadline_ns) {
  const bool first = !shutdown_begun_;
  shutdown_begun_ = true;
  const std::int64_t began_ns = world_.now();
  host& machine = node_->user.machine;
  const std::int64_t stalled_ns = machine.stalled_ns();
  const auto report = node_->memory->async_shutdown(point_of(after(world_, deadline_ns)), hf::block);
  if (!report) return refused_step(report.error());
  shutdown_ended_ = true;
  const std::int64_t took_ns = world_.now() - began_ns - (machine.stalled_ns() - stalled_ns);
  if (first && deadline_ns >= 0 && took_ns > deadline_ns) {
    kernel_scope kernel;
    world_.violate("W-7", "shutdown took " + std::to_string(took_ns) + " ns of " + std::to_string(deadline_ns) +
                              " (stalled time not counted)");
  }
  return {};
}

step_result scripted_stage::release(std::int64_t deadline_ns) {
  // Who gave up waiting for the shutdown, or had no memory to, asks again.
  for (unsigned i = 0; i < 4 && shutdown_begun_ && !shutdown_ended_; ++i) static_cast<void>(shut_down(deadline_ns));
  if ((node_->memory && !shutdown_ended_) || released_) return {false, 0};
  released_ = true;
  auto gone = device_->tear_down(after(world_, deadline_ns));
  if (!gone) return {false, 0};
  witnessed_ = true;
  if (!node_->memory) return {};
  const auto report = node_->memory->release_unconfirmed(std::move(*gone));
  if (!report) return refused_step(report.error());
  spans_lost_ = report->spans_quarantined;
  return {};
}

void scripted_stage::recount(const std::vector<hf::pinned::arena_snapshot>& arenas, std::uint64_t& live,
                             std::uint64_t& holds) {
  for (const hf::pinned::arena_snapshot& one : arenas) {
    live += one.live;
    holds += one.holds;
    expect(one.largest_free_bytes <= one.free_bytes && one.free_bytes + one.quarantined_bytes <= one.size_bytes,
           "PM-I40", "free and quarantined granules of an arena are no more than it has");
    // A settled arena's lost granules went with it.
    expect(one.state == hf::pinned::arena_state::retiring || (one.live == 0) == (one.free_bytes == one.size_bytes),
           "PM-I40", "an arena without spans is free, and one with spans is not");
  }
}

step_result scripted_stage::snapshot() {
  std::uint64_t live = 0, holds = 0;
  const hf::pinned::memory_snapshot taken = node_->memory->snapshot();
  {
    kernel_scope kernel;
    invariants::look_at_snapshot(world_, node_->user.machine.index(), taken);
  }
  recount(taken.arenas, live, holds);
  expect(
      taken.pool.arena_count == taken.arenas.size() && taken.pool.live_spans == live && taken.pool.in_flight == holds,
      "PM-I51", "the sums of a snapshot equal a recount of its arenas in service");
  recount(taken.retiring, live, holds);
  expect(taken.budget.reserved_open_bytes <= taken.budget.registered_bytes, "PM-I51",
         "open reservations are a part of what is charged");
  return {};
}

}  // namespace

scripted_settings small_stage() {
  scripted_settings how;
  how.pool = {.initial_arena_bytes = 4096,
              .max_arena_bytes = 2 * 4096,
              .dedicated_arena_min = 2 * 4096,
              .registered_bytes_budget = 4 * 4096};
  how.device.map_ns = how.device.unmap_ns = how.device.get_ns = 0;
  how.device.declared.get_works = false;
  how.shutdown_ns = how.teardown_ns = -1;
  how.search_ops_only = true;
  return how;
}

std::expected<std::shared_ptr<void>, std::string> start_scripted(world& w, const scripted_settings& how,
                                                                 const plan& what) {
  kernel_scope kernel;
  auto stage = std::make_shared<scripted_stage>(w, how, what);
  if (auto wrong = stage->prepare()) return std::unexpected(std::move(*wrong));
  return stage;
}

}  // namespace holdfast::sim
