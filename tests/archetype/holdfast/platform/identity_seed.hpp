// Archetype of I1: only a host can supply it.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::platform {

class identity_seed {
 public:
  identity_seed() = delete;
  identity_seed(const identity_seed&) = delete;
  identity_seed& operator=(const identity_seed&) = delete;
  std::uint64_t draw() noexcept;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
