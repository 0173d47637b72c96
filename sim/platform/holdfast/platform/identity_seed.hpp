// Simulated identity seed: a stream of the run, one for each host. Clause I1.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::platform {

class identity_seed {
 public:
  /// Never zero; another value for each life of a host.
  std::uint64_t draw() noexcept;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
