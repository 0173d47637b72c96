// The real host: what a runtime is given instead of looking anything up. Clause Z1.
//
// Ownership   Outlives every runtime made with it.
// Threading   Accessors are callable from any thread.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/executor.hpp>
#include <holdfast/platform/identity_seed.hpp>
#include <holdfast/platform/pages.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

class host {
 public:
  /// `executor_threads` ≥ 1.
  explicit host(unsigned executor_threads = 1) : pool_(executor_threads) {}

  const class clock& clock() const noexcept { return clock_; }
  class pages& pages() noexcept { return pages_; }
  class identity_seed& identity_seed() noexcept { return seed_; }
  class executor executor() noexcept { return pool_.get(); }
  /// Stops the executor: what was not run is dropped.
  void stop() noexcept { pool_.stop(); }

 private:
  // Destroyed bottom-up: the pool's threads end before what their work uses.
  class clock clock_;
  class pages pages_;
  class identity_seed seed_;
  executor_pool pool_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
