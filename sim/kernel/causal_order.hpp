// What happened so far in a run, up to the order of things that do not know of each other.
//
// Why this exists: two schedules that differ in the order of independent operations lead to the same state. A search of
// all schedules recognizes such a state by the operations that led to it, each with those it depends on, and does not
// search it twice (sim/kernel/state_cache.hpp).
//
// What depends on what: operations of one fiber; operations on one object, unless both only read it; whatever touches
// state of the simulator that no object stands for (`world::touch`: simulated memory, the event queue, a scenario's own
// books; every driver call does); who wakes and who is woken. Time, sleep and joins depend on everything before,
// and everything after depends on them. What core keeps in plain memory counts as ordered by these: a data race on
// it is for the ThreadSanitizer build to find.
//
// Ownership   A search's; a world borrows it for a run.
// Threading   One OS thread, in kernel scope or on a fiber; allocates in kernel scope only.
// Failure     Hashes of 64 bits: of n states, two are taken for one with a chance of n * n / 2^65.
#pragma once

#include <sim/kernel/world.hpp>

#include <cstdint>
#include <vector>

namespace holdfast::sim {

class causal_order {
 public:
  /// A run begins.
  void begin();
  /// A fiber did `op` on `object`, or goes on after it waited for it.
  void performed(std::uint32_t fiber, op_kind op, object_id object);
  /// A fiber touches state of the simulator that no object stands for.
  void touched(std::uint32_t fiber);
  /// `waker` made `woken` runnable.
  void woke(std::uint32_t waker, std::uint32_t woken);
  /// Time passed, or something came from outside every fiber.
  void passed() { barrier(0); }
  /// Something was told to the checks: the sum of these must be the same where `state` is, whatever their order.
  void told(std::uint64_t content) noexcept { told_ += content; }

  /// Equal for two prefixes of runs if they are the same up to the order of independent operations.
  std::uint64_t state() const noexcept { return total_; }
  std::uint64_t said() const noexcept { return told_; }

 private:
  struct object_state {
    std::uint64_t written = 0;  // by the last operation that may change it
    std::uint64_t read = 0;     // sum of the reads since
  };
  std::uint64_t& last_of(std::uint32_t fiber);
  std::uint64_t barrier(std::uint64_t by);

  std::vector<std::uint64_t> last_;  // by fiber
  std::vector<object_state> objects_;
  object_state outside_;  // what no object stands for
  std::uint64_t epoch_ = 0;
  std::uint64_t total_ = 0;
  std::uint64_t told_ = 0;
};

}  // namespace holdfast::sim
