// The planned faults of a run, and the points where they can strike.
//
// Why this exists: a fault is data, so that a run with faults can be written down, replayed and shrunk. Hardware
// and drivers ask at named points whether something is planned there; what "refuse" or "lie" means is theirs.
//
// Ownership   The world's run owns the plan (`install`); points are names with static storage.
// Units       `fault::nth` counts passes from 1. `fault::value` means what the point's text says.
// Threading   One OS thread.
// Failure     An unknown point name or kind is refused when the plan is installed.
#pragma once

#include <sim/scenarios/scenario.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

struct fault_point {
  std::string_view name;   // "nic.register"
  std::string_view text;   // what it means
  std::string_view kinds;  // "refuse|delay|lie"; "*" among them: any word, matched against the detail of the pass
};
/// Every point of hardware, drivers and platform, in order of name.
std::span<const fault_point> all_fault_points();

class fault_plan {
 public:
  /// The plan of the world. Empty until `install`.
  static fault_plan& of(world& w);
  /// Replaces the plan. Error sentence if a fault names an unknown point or kind; nothing is armed then.
  std::optional<std::string> install(std::vector<fault> faults);
  /// Passes `point` on `h`: the planned fault that strikes now, or null. Nothing strikes in the calm phase.
  /// `detail` narrows a pass ("pinned.span" at the point "heap"): a fault whose kind is that word counts only passes
  /// with that detail; a fault of another kind counts them all. Logs `fault_fired`.
  const fault* strike(host& h, std::string_view point, std::string_view detail = {});
  /// How often the point was passed on any host (for `explore --faults each`).
  std::uint64_t passes(std::string_view point) const;
  /// Planned faults that never struck.
  std::vector<fault> inert() const;
  /// How often each planned fault struck, in the plan's order, for the effect audit.
  std::vector<std::uint64_t> struck() const;
  /// From here on, where a fault could have struck is kept in `into`: "nic.register", and "heap:pinned.span" of a point
  /// with named sites.
  void collect_sites(std::set<std::string, std::less<>>& into) { sites_ = &into; }

 private:
  void cancel_at_suspensions(world& w);
  void collect(std::size_t point, std::string_view detail);

  struct armed {
    fault what;
    std::size_t point = 0;     // index in all_fault_points()
    bool by_detail = false;    // counts only passes whose detail is `what.what`
    std::uint64_t passed = 0;  // passes that this fault counts
    std::uint64_t struck = 0;
  };
  std::vector<armed> armed_;
  std::vector<std::uint64_t> passes_;  // by index of the point
  std::set<std::string, std::less<>>* sites_ = nullptr;
};

}  // namespace holdfast::sim
