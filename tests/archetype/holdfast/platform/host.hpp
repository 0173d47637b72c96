// Archetype of Z1: a host is made by whoever makes runtimes, never by core.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/executor.hpp>
#include <holdfast/platform/identity_seed.hpp>
#include <holdfast/platform/pages.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

class host {
 public:
  host() = delete;
  host(const host&) = delete;
  host& operator=(const host&) = delete;
  const class clock& clock() const noexcept;
  class pages& pages() noexcept;
  class identity_seed& identity_seed() noexcept;
  class executor executor() noexcept;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
