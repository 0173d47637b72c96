// Who decides what happens next.
//
// Why this exists: the rest of the world cannot tell whether choices come from chance, from a search or from a
// trace. At each scheduling point with two or more enabled entries the world asks; points with one are no choice
// and are not recorded.
//
// Enabled entries: every runnable fiber in order of creation, then *time* (the next event) if an event is due.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::sim {

class world;

struct choice_point {
  std::uint32_t enabled;  // number of entries, ≥ 2
  std::uint32_t fibers;   // how many of them are fibers; time is entry `fibers` if enabled > fibers
  std::uint32_t current;  // entry of the fiber that runs now, or `none` if it cannot go on
  static constexpr std::uint32_t none = 0xffffffff;
  bool calm;             // time may move only when no fiber is runnable
  bool searched = true;  // a search of all schedules is to branch here
};

class strategy {
 public:
  virtual ~strategy() = default;
  virtual std::string_view name() const noexcept = 0;
  virtual void begin(world&) = 0;
  /// Index of an entry, below `enabled`.
  virtual std::uint32_t choose(world&, const choice_point&) = 0;
};

}  // namespace holdfast::sim
