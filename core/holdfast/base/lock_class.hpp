// What a lock is, apart from any one lock: its name and its place in the order.
//
// Why this exists: rank checking, reports and thread-safety all speak of classes of locks ("pinned
// retiring list"), not of instances. Both sides of the seam take a class when a lock is made; only
// the simulated side checks it.
//
// Ownership   Classes are constants with static storage; locks keep a reference.
// Units       Ranks are positions in one total order, see base/lock_ranks.hpp. No two classes share one.
// Threading   Immutable.
// Failure     None.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI {

struct lock_class {
  /// Locks are acquired in rising rank. Two locks of one class never nest.
  std::uint16_t rank;
  /// Nothing ranked below 800 may be taken while a leaf is held (primitives of base are 800 and above).
  bool leaf;
  const char* name;
};

}  // namespace holdfast::inline HOLDFAST_ABI
