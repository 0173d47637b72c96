// Inside of a fleet: the core of one host, and what its ops do. See fleet.hpp.
#pragma once

#include <sim/scenarios/fleet.hpp>
#include <sim/scenarios/pool_user.hpp>

#include <sim/kernel/world.hpp>

#include <holdfast/base/block.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/runtime/runtime.hpp>
#include <holdfast/runtime/ucx_device.hpp>
#include <holdfast/transport/transport.hpp>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace holdfast::sim {

/// What a host offers to others, in kernel memory: it survives the host.
struct published {
  bool absent = false;  // nobody will publish it any more
  holdfast::remote_reference where;
  holdfast::peer_id owner;
  std::uint64_t pattern = 0;
  latch there;
};

struct listening_host {
  std::string address;
  holdfast::peer_id self;
  bool failed = false;
  latch there;
};

class fleet_node;

class fleet final : public interpreter, public listener {
 public:
  fleet(world& w, const fleet_settings& how) : the_world(w), settings(how) {}
  std::optional<std::string> inspect(const op& step) const override;
  step_result execute(host& h, const op& step, std::uint64_t number) override;
  /// The lanes of that host ended, or it crashed. When the last one left, the calm begins.
  void host_left(const std::string& name);
  /// A host is up, failed to start, or crashed before it was. After the last one the trouble begins.
  void host_started(const std::string& name);
  void host_crashed(host& h);
  /// Begins the program of a host.
  void run(host& h);
  void host_returns(host& h);
  /// The program of a host ended: nothing of it is left to run.
  void host_ended(const std::string& name);
  /// Faults stop, links heal, and who was stopped goes on.
  void end_trouble();
  /// Every host whose lanes still wait shuts its core down, and nobody waits for what others were to publish.
  void lose_patience();
  /// Nobody waits any more for what only lives of `owner` before `next_life` were to publish.
  void drop_from_board(const host& owner, std::uint32_t next_life);
  void declare_absent(published& entry);
  /// Waits until it is on the board. False: it never will be.
  bool wait_for(published& entry);

  world& the_world;
  const fleet_settings settings;
  plan owned_plan;
  std::optional<workload> work;
  void on_event(world&, const logged_event& e) override;
  /// A host was told that a peer is lost: once for each connection (TP-I19).
  void loss_told(host& h, const holdfast::transport::peer_loss& what);
  /// Compares the ledger of `h` with the events of its changes, whenever its lock is released (PM-I7).
  void watch_ledger(host& h);

  std::map<std::string, fleet_node*> nodes;                  // on the stacks of their fibers
  std::map<std::uint16_t, std::uint64_t> charged_by_events;  // by index of the host
  std::map<std::string, listening_host> listening;
  std::map<std::string, published> board;
  std::map<std::string, latch> lanes_done;
  latch patience_lost;
  std::set<std::pair<std::string, std::uint64_t>> losses_told;  // life of a host, number of its connection
  bool trouble_ended = false;
  std::set<std::string> starting;  // for the first time
  std::set<std::string> working;   // their lanes have not ended
  std::set<std::string> up;        // their program has not ended
  std::set<std::string> watched;   // their ledger is
  latch everyone_done;
  latch never;  // who waits here is stuck for good; in kernel memory, since nothing unwinds a fiber
  latch everyone_started;
};

class fleet_node {
 public:
  fleet_node(fleet& of, host& machine);

  /// Makes the runtime. False: the fault plan spoiled it; nothing is left.
  bool open();
  /// Idempotent: later calls do nothing.
  void shut_down(std::int64_t deadline_ns);
  holdfast::transport::transport& peers() noexcept { return *core->peers(); }

  fleet& of;
  host& machine;
  // Destroyed bottom-up: users before what they use.
  holdfast::platform::host platform;
  std::optional<holdfast::runtime> core;
  pool_user user;
  bool shut = false;
  bool witnessed = false;              // the shutdown proved that worker and context are gone
  std::uint64_t bytes_registered = 0;  // charged when the shutdown's report was made
};

/// The body of a host's fiber "main".
void run_node(fleet& f, host& h);

struct fleet_ops {
  static step_result close(fleet&, fleet_node&, const op&);
  static step_result connect(fleet&, fleet_node&, const op&);
  static step_result crash(fleet&, fleet_node&, const op&);
  static step_result declare_dead(fleet&, fleet_node&, const op&);
  static step_result get(fleet&, fleet_node&, const op&);
  static step_result get_start(fleet&, fleet_node&, const op&);
  static step_result heal(fleet&, fleet_node&, const op&);
  static step_result partition(fleet&, fleet_node&, const op&);
  static step_result pause(fleet&, fleet_node&, const op&);
  static step_result publish(fleet&, fleet_node&, const op&);
  static step_result restart(fleet&, fleet_node&, const op&);
  static step_result resume(fleet&, fleet_node&, const op&);
  static step_result revoke(fleet&, fleet_node&, const op&);
  static step_result shutdown(fleet&, fleet_node&, const op&);
  static step_result slow(fleet&, fleet_node&, const op&);
  static step_result wait(fleet&, fleet_node&, const op&);
};

}  // namespace holdfast::sim
