// Kernel scope: the simulator's own code, running on whatever stack is current.
//
// Why this exists: drivers, hardware, recorder and checks often run on a fiber of the program under test. In
// kernel scope nothing schedules and allocation is ordinary; outside it, code on a fiber allocates from its
// host's region, which is thrown away when the host crashes or the world ends.
//
// Rule: enter it at every entry point of sim/ that a fiber can call; leave it (`core_scope`) only to call back
// into core.
#pragma once

#include <sim/kernel/race_watch.hpp>

namespace holdfast::sim {

namespace detail {
// One OS thread runs a world, so plain globals are enough. Depth of kernel scope: 0 on a fiber of the program.
extern unsigned kernel_depth;
}  // namespace detail

#if defined(HOLDFAST_TSAN)
namespace detail {
void set_kernel_depth(unsigned depth) noexcept;
}
#else
namespace detail {
inline void set_kernel_depth(unsigned depth) noexcept { kernel_depth = depth; }
}  // namespace detail
#endif

class kernel_scope {
 public:
  kernel_scope() noexcept { detail::set_kernel_depth(detail::kernel_depth + 1); }
  ~kernel_scope() { detail::set_kernel_depth(detail::kernel_depth - 1); }
  kernel_scope(const kernel_scope&) = delete;
  kernel_scope& operator=(const kernel_scope&) = delete;
};

/// Back to the program for a callback into core; restores the scope it found.
class core_scope {
 public:
  core_scope() noexcept : saved_(detail::kernel_depth) { detail::set_kernel_depth(0); }
  ~core_scope() { detail::set_kernel_depth(saved_); }
  core_scope(const core_scope&) = delete;
  core_scope& operator=(const core_scope&) = delete;

 private:
  unsigned saved_;
};

}  // namespace holdfast::sim
