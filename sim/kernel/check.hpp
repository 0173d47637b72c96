// A named promise that every run is held to.
//
// Why this exists: invariants of the spec pages are checks with their number and their sentence. They see the
// event stream and the simulated hardware only, so that looking does not disturb.
//
// Ownership   The registry (properties/invariants/registry.hpp) owns checks; a world borrows them for one run.
// Threading   One OS thread, always in kernel scope.
// Failure     A broken promise is reported through `world::violate`.
#pragma once

#include <sim/kernel/event.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace holdfast::sim {

class world;

class check {
 public:
  virtual ~check() = default;
  /// "PM-I5", "W-1".
  virtual std::string_view id() const noexcept = 0;
  virtual std::string_view sentence() const noexcept = 0;
  /// Kinds of events it wants to see.
  virtual std::vector<event_kind> wants() const = 0;
  /// Forgets the last run.
  virtual void begin(world&) = 0;
  virtual void on_event(world&, const logged_event&) = 0;
  /// At the end of a run in which every host ended cleanly and nothing is owed any more.
  virtual void at_rest(world&) {}
  /// Nothing can run, no event is due, and work is unfinished. What a check reports here stands in place of the
  /// "deadlock" or "lost wakeup" that the world reports otherwise: an invariant names the bug better.
  virtual void at_stuck(world&) {}

  /// How often it was evaluated, and how often with something to look at. Over all runs of the process.
  std::uint64_t evaluated = 0;
  std::uint64_t exercised = 0;
};

}  // namespace holdfast::sim
