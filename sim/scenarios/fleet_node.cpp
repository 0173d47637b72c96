#include <sim/scenarios/fleet_node.hpp>

#include <properties/invariants/looks.hpp>
#include <sim/hardware/fabric.hpp>
#include <sim/hardware/host_memory.hpp>
#include <sim/kernel/kernel_scope.hpp>

#include <limits>

namespace holdfast::sim {

namespace hf = holdfast;

namespace {

// What a close may take beyond its deadline, when it is forced: transport.close_timeout.
constexpr std::int64_t close_bound_ns = 2'000'000'000;

// For how long a host may have had no time and still be expected to keep its connections.
constexpr std::int64_t stall_max_ns = 1'000'000'000;

hf::platform::time_point in(world& w, std::int64_t ns) {
  return hf::platform::time_point{hf::platform::duration{w.now() + ns}};
}

// A caller of the transport for as long as it waits for the answer.
class waiting_call {
 public:
  explicit waiting_call(const fleet_node& node) noexcept : world_(node.of.the_world), host_(node.machine.index()) {
    tell(true);
  }
  ~waiting_call() { tell(false); }
  waiting_call(const waiting_call&) = delete;
  waiting_call& operator=(const waiting_call&) = delete;

 private:
  void tell(bool waits) noexcept {
    kernel_scope kernel;
    invariants::told_call(world_, host_, waits);
  }
  world& world_;
  std::uint16_t host_;
};

}  // namespace

fleet_node::fleet_node(fleet& f, host& h)
    : of(f), machine(h), platform(h, f.settings.executor_threads), user(f.the_world, h) {}

bool fleet_node::open() {
  hf::runtime_options options;
  options.pinned = of.settings.pool;
  options.recorded_events = 0;  // the world sees every event anyway
  hf::ucx_device_options ucx;
  hf::transport::settings& values = ucx.transport;
  const listening_host& before = of.listening.at(machine.name());
  // Who was here in an earlier life has the same name and address in this one.
  values.worker_id = before.self.worker_id;
  values.listen_address = !before.address.empty() ? std::string(before.address)
                                                  : "10.0." + std::to_string((machine.index() + 1) / 256) + "." +
                                                        std::to_string((machine.index() + 1) % 256) + ":0";
  values.progress_spin = hf::platform::duration{of.settings.progress_spin_ns};
  values.probe_bytes_max = of.settings.gets ? 64 : 0;
  values.max_operations = 64;
  // Each peer may be met from both sides at once, and the start-up probe needs a pair.
  values.max_connections = of.settings.connections_max != 0
                               ? of.settings.connections_max
                               : std::max<std::size_t>(16, 2 * of.settings.hosts.size() + 2);
  values.max_keys = of.settings.keys_max;
  values.peer_suspect_after = hf::platform::duration{of.settings.suspect_after_ns};
  if (of.settings.watch_losses)
    ucx.lost = [&f = of, &h = machine](const hf::transport::peer_loss& what) { f.loss_told(h, what); };
  if (of.settings.get_bytes_max != 0) ucx.wire.get_bytes_max = of.settings.get_bytes_max;
  if (of.settings.progress_batch != 0) values.progress_batch = of.settings.progress_batch;
  const std::uint64_t batch = values.progress_batch, connections_max = values.max_connections;
  const std::int64_t connect_timeout_ns = values.connect_timeout.count();
  auto made = hf::runtime::create(platform, options, hf::ucx_device(std::move(ucx)));
  if (!made) return false;
  core.emplace(std::move(*made));
  user.pool = &core->pinned();
  kernel_scope kernel;
  invariants::told_arena_sizes(of.the_world, machine.index(), of.settings.pool.initial_arena_bytes,
                               of.settings.pool.max_arena_bytes, memory_of(machine).page_bytes());
  invariants::told_transport(of.the_world, machine.index(), batch, connect_timeout_ns, connections_max);
  return true;
}

void fleet_node::shut_down(std::int64_t deadline_ns) {
  if (shut || !core) return;
  shut = true;
  world& w = of.the_world;
  const std::int64_t began_ns = w.now();
  const std::int64_t stalled_ns = machine.stalled_ns();
  {
    kernel_scope kernel;
    invariants::told_shutdown(w, machine.index(), began_ns + deadline_ns);
  }
  auto report = core->async_shutdown(in(w, deadline_ns), hf::block);
  const std::int64_t took_ns = w.now() - began_ns - (machine.stalled_ns() - stalled_ns);
  {
    kernel_scope kernel;
    invariants::told_shutdown(w, machine.index(), std::numeric_limits<std::int64_t>::max());
  }
  if (!report) return;
  witnessed = report->witnessed;
  bytes_registered = report->bytes_registered;
  if (took_ns > deadline_ns) {
    kernel_scope kernel;
    w.violate("W-7", machine.name() + ": shutdown took " + std::to_string(took_ns) + " ns of " +
                         std::to_string(deadline_ns) + " (stalled time not counted)");
  }
  if (witnessed && bytes_registered != 0) {
    kernel_scope kernel;
    w.violate("W-5", machine.name() + ": " + std::to_string(bytes_registered) +
                         " bytes are still charged after the witness settled everything");
  }
}

namespace {

// What is left of this process may still be used by a library that did not return: only its exit ends it.
[[noreturn]] void exit_process(fleet& f, host& h) {
  world& w = f.the_world;
  w.at(w.now(), [&h] { h.crash(); });
  for (;;) f.never.wait(w);
}

}  // namespace

void run_node(fleet& f, host& h) {
  world& w = f.the_world;
  fleet_node node(f, h);
  const bool opened = node.open();
  {
    kernel_scope kernel;
    listening_host& here = f.listening.at(h.name());
    here.failed = !opened;
    if (!opened) f.drop_from_board(h, h.life() + 1);
    if (opened) {
      here.address.assign(node.peers().listen_address());
      here.self = node.peers().self();
      f.nodes[h.name()] = &node;
      f.watch_ledger(h);
    }
    here.there.open(w);
    f.host_started(h.name());
  }
  f.everyone_started.wait(w);
  if (opened) {
    latch& done = f.lanes_done.at(h.name());
    f.work->spawn(h, done);
    latch::wait_for_either(w, done, f.patience_lost);
    if (!done.is_open()) node.shut_down(f.settings.shutdown_ns);
    done.wait(w);
  }
  {
    kernel_scope kernel;
    f.host_left(h.name());
  }
  f.everyone_done.wait(w);
  // Callers may keep buffers past the shutdown; here some are dropped before and some after.
  for (std::size_t i = 0; i < pool_user::slots_max; i += 2) node.user.slots[i] = {};
  node.shut_down(f.settings.shutdown_ns);
  for (auto& slot : node.user.slots) slot = {};
  {
    kernel_scope kernel;
    f.nodes.erase(h.name());
  }
  if (h.leaks_on_purpose() || (opened && !node.witnessed)) exit_process(f, h);
  kernel_scope kernel;
  f.host_ended(h.name());
}

void fleet::loss_told(host& h, const hf::transport::peer_loss& what) {
  kernel_scope kernel;
  if (!losses_told.emplace(h.name() + "@" + std::to_string(h.life()), what.connection).second)
    the_world.violate("TP-I19",
                      h.name() + " was told twice that it lost connection " + std::to_string(what.connection));
}

bool fleet::wait_for(published& entry) {
  if (!entry.there.is_open() && patience_lost.is_open()) return false;
  entry.there.wait(the_world);
  return !entry.absent;
}

step_result fleet_ops::get_start(fleet& f, fleet_node& node, const op& step) {
  pool_user::slot& s = node.user.slot_of(step);
  if (!s.held) return {false, 0};
  published* from = nullptr;
  {
    kernel_scope kernel;
    from = &f.board[step.words.at("name")];
  }
  if (!f.wait_for(*from)) return {false, 0};
  bool stale = false;
  for (const auto& [name, other] : f.listening)
    stale =
        stale || (other.self.worker_id == from->owner.worker_id && other.self.incarnation != from->owner.incarnation);
  const step_result begun = node.user.begin_get(s, from->owner, from->where, from->pattern, stale);
  if (begun.ok) s.started->given_back = step.number("given_back") != 0;
  return begun;
}

step_result fleet_ops::get(fleet& f, fleet_node& node, const op& step) {
  const step_result begun = get_start(f, node, step);
  const step_result done = begun.ok ? node.user.await(step) : begun;
  if (step.number("must") != 0) {
    kernel_scope kernel;
    // A host that gets no time for long is given up by others, and gives up itself.
    bool had_time = true;
    for (const auto& each : f.the_world.hosts()) had_time = had_time && each->stalled_ns() < stall_max_ns;
    const bool connected = done.ok || done.code != static_cast<std::uint64_t>(hf::error_code::unreachable);
    if (had_time) invariants::look_at_meeting(f.the_world, node.machine.index(), connected);
  }
  return done;
}

step_result fleet_ops::publish(fleet& f, fleet_node& node, const op& step) {
  const pool_user::slot& s = node.user.slot_of(step);
  const auto reference = s.held.remote();
  kernel_scope kernel;
  published& entry = f.board[step.words.at("name")];
  entry.absent = !reference.has_value();
  if (reference) {
    entry.where = *reference;
    entry.owner = node.peers().self();
    entry.pattern = s.pattern.value_or(0);
  }
  entry.there.open(f.the_world);
  return {reference.has_value(), 0};
}

step_result fleet_ops::wait(fleet& f, fleet_node&, const op& step) {
  published* awaited = nullptr;
  {
    kernel_scope kernel;
    awaited = &f.board[step.words.at("name")];
  }
  return {f.wait_for(*awaited), 0};
}

step_result fleet_ops::connect(fleet& f, fleet_node& node, const op& step) {
  listening_host& other = f.listening.at(step.words.at("host"));
  other.there.wait(f.the_world);
  if (other.failed) return {false, 0};
  const waiting_call call(node);
  auto met = node.peers().async_connect(std::string(other.address), hf::peer_id{}, hf::block);
  if (!met) return refused_step(met.error());
  return {};
}

step_result fleet_ops::close(fleet& f, fleet_node& node, const op& step) {
  const listening_host& other = f.listening.at(step.words.at("host"));
  const hf::peer_id whom = other.self;
  world& w = f.the_world;
  const std::int64_t began_ns = w.now(), stalled_ns = node.machine.stalled_ns();
  const std::int64_t deadline_ns = step.number("deadline_ns", 1'000'000);
  const waiting_call call(node);
  auto ended = node.peers().async_close(whom, in(w, deadline_ns), hf::block);
  const std::int64_t took_ns = w.now() - began_ns - (node.machine.stalled_ns() - stalled_ns);
  // After its deadline it is forced, which has a bound of its own.
  if (took_ns > deadline_ns + close_bound_ns) {
    kernel_scope kernel;
    w.violate("TP-I20", node.machine.name() + ": a close took " + std::to_string(took_ns) + " ns of " +
                            std::to_string(deadline_ns) + " (stalled time not counted)");
  }
  if (!ended) return refused_step(ended.error());
  return {};
}

step_result fleet_ops::revoke(fleet& f, fleet_node& node, const op& step) {
  const hf::peer_id whom = f.listening.at(step.words.at("host")).self;
  const waiting_call call(node);
  auto ended = node.peers().async_revoke(whom, hf::block);
  if (!ended) return refused_step(ended.error());
  return {};
}

step_result fleet_ops::declare_dead(fleet& f, fleet_node& node, const op& step) {
  const hf::peer_id whom = f.listening.at(step.words.at("host")).self;
  const waiting_call call(node);
  auto ended = node.peers().async_declare_dead(whom, hf::transport::death_evidence::told_by_operator, hf::block);
  if (!ended) return refused_step(ended.error());
  return {};
}

step_result fleet_ops::crash(fleet& f, fleet_node&, const op& step) {
  kernel_scope kernel;
  const std::string& name = step.words.at("host");
  host* const victim = f.the_world.find_host(name);
  f.the_world.excuse_waiting();
  // From an event: the crashing host's own fiber may be the one that asks.
  f.the_world.at(f.the_world.now(), [victim] { victim->crash(); });
  return {};
}

// Also by an event, so that it comes after a crash that was asked for before.
step_result fleet_ops::restart(fleet& f, fleet_node&, const op& step) {
  host* const dead = f.the_world.find_host(step.words.at("host"));
  {
    kernel_scope kernel;
    f.the_world.at(f.the_world.now(), [dead] { dead->restart(); });
  }
  sleep_for(f.the_world, 1);
  return {};
}

// In the calm nobody is stopped and nothing is cut any more.
step_result fleet_ops::pause(fleet& f, fleet_node&, const op& step) {
  host& whom = *f.the_world.find_host(step.words.at("host"));
  if (f.the_world.calm() || !whom.alive()) return {false, 0};
  f.the_world.excuse_waiting();
  whom.pause();
  return {};
}

step_result fleet_ops::partition(fleet& f, fleet_node&, const op& step) {
  world& w = f.the_world;
  if (w.calm()) return {false, 0};
  w.excuse_waiting();
  fabric::of(w).partition(*w.find_host(step.words.at("host")), *w.find_host(step.words.at("to")),
                          step.number("one_way") != 0);
  return {};
}

step_result fleet_ops::heal(fleet& f, fleet_node&, const op& step) {
  world& w = f.the_world;
  fabric::of(w).heal(*w.find_host(step.words.at("host")), *w.find_host(step.words.at("to")));
  return {};
}

step_result fleet_ops::slow(fleet& f, fleet_node&, const op& step) {
  world& w = f.the_world;
  if (w.calm()) return {false, 0};
  fabric::of(w).slow(*w.find_host(step.words.at("host")), *w.find_host(step.words.at("to")), step.number("ns"));
  return {};
}

step_result fleet_ops::resume(fleet& f, fleet_node&, const op& step) {
  f.the_world.find_host(step.words.at("host"))->resume();
  return {};
}

step_result fleet_ops::shutdown(fleet& f, fleet_node& node, const op& step) {
  node.shut_down(step.number("deadline_ns", f.settings.shutdown_ns));
  return {};
}

}  // namespace holdfast::sim
