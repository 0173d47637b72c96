// The simulated host as core sees it: the platform face of one machine of the world. Clause Z1.
//
// Created and destroyed on a fiber of that machine; destroying it stops its executor.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/executor.hpp>
#include <holdfast/platform/identity_seed.hpp>
#include <holdfast/platform/pages.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

class host {
 public:
  /// `executor_threads` worker fibers, ≥ 1.
  explicit host(sim::host& machine, unsigned executor_threads = 1)
      : machine_(machine), pool_(machine, executor_threads) {}

  const class clock& clock() const noexcept { return clock_; }
  class pages& pages() noexcept { return pages_; }
  class identity_seed& identity_seed() noexcept { return seed_; }
  class executor executor() noexcept { return pool_.get(); }
  void stop() noexcept { pool_.stop(); }
  sim::host& machine() noexcept { return machine_; }

 private:
  // Destroyed bottom-up: the pool's workers end before what their work uses.
  sim::host& machine_;
  class clock clock_;
  class pages pages_;
  class identity_seed seed_;
  executor_pool pool_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
