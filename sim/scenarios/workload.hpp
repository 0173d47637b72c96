// Running a list of ops: one fiber for each `who`, in the order of the list.
//
// Why this exists: generated, written and shrunken traces are the same thing to a scenario, a list of ops. What is
// common to every interpreter of such a list stands here: grouping, order, events, and waiting for the others.
//
// "a/owner@2" is of the second life of host a, "a/owner" of the first.
//
// Ownership   A workload borrows the plan and the interpreter for the run.
// Threading   One OS thread. `prepare` in kernel scope; `execute` on a fiber of the op's host, outside kernel scope.
// Failure     A wrong op is an error sentence before anything runs.
#pragma once

#include <sim/scenarios/scenario.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::sim {

class fiber;

/// Opens once; who waits goes on. Neither is a scheduling point of the program under test.
class latch {
 public:
  bool is_open() const noexcept { return open_; }
  void open(world& w);
  /// On a fiber. Returns at once if open.
  void wait(world& w);
  /// As `wait`, at most until `until_ns`. False: it is not open.
  bool wait_until(world& w, std::int64_t until_ns);
  /// Returns when one of two is open.
  static void wait_for_either(world& w, latch& a, latch& b);

 private:
  void forget(const fiber* f) noexcept;
  bool open_ = false;
  std::vector<fiber*> waiting_;
};

/// What a step came to, for the event `op_ended`.
struct step_result {
  bool ok = true;
  std::uint64_t code = 0;
};

class interpreter {
 public:
  virtual ~interpreter() = default;
  /// Error sentence if `step` makes no sense ("get needs `bytes`"). Called for every op before the run.
  virtual std::optional<std::string> inspect(const op& step) const = 0;
  /// Does `step`; `number` counts ops of the plan from 1.
  virtual step_result execute(host& h, const op& step, std::uint64_t number) = 0;
};

class workload {
 public:
  /// Error sentence if an op is refused by the interpreter or names no "host/fiber".
  static std::expected<workload, std::string> make(const plan& what, interpreter& how);

  /// Names of the hosts that ops run on, each once, in order of first use.
  std::vector<std::string> hosts() const;
  /// The latest life of a host in which it runs an op that `matches`; 0: in none.
  std::uint32_t last_life_with(const std::string& host, const std::function<bool(const op&)>& matches) const;
  /// Spawns the fibers of this life of `h`; `done` opens when the last of them has finished its ops (at once if it has
  /// none). Called on a fiber of `h` or from kernel scope. `done` and the workload outlive the fibers.
  void spawn(host& h, latch& done);

 private:
  struct lane {
    std::string host;
    std::string name;
    std::uint32_t life;
    std::vector<std::pair<const op*, std::uint64_t>> steps;
  };
  explicit workload(interpreter& how) : how_(&how) {}
  interpreter* how_;
  std::vector<lane> lanes_;
  std::map<std::pair<std::string, std::uint32_t>, std::size_t>
      left_;  // lanes of a life of a host that have not finished
};

}  // namespace holdfast::sim
