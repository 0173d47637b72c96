// Shared by the simulated platform's implementation files: how an operation finds its world.
#pragma once

#include <sim/kernel/fiber.hpp>
#include <sim/kernel/kernel_scope.hpp>
#include <sim/kernel/world.hpp>

#include <cstdio>
#include <cstdlib>

namespace holdfast::sim {

/// The world, if the calling code runs on a fiber outside kernel scope; else null: nothing schedules then.
inline world* scheduling_world() noexcept { return kernel_access::scheduling() ? kernel_access::the_world() : nullptr; }

[[noreturn]] inline void misuse(const char* what) noexcept {
  if (world* const w = kernel_access::the_world(); w != nullptr && w->running() != nullptr)
    w->violate_and_stop("platform misuse", what);
  std::fprintf(stderr, "holdfast-sim: %s\n", what);
  std::abort();
}

}  // namespace holdfast::sim
