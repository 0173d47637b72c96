// Real identity seed: the system's random source. Clause I1.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::platform {

class identity_seed {
 public:
  /// 64 random bits, never zero, different for every call of every process of a machine with
  /// overwhelming probability. Not derived from time, process id or addresses (spec/runtime 10).
  std::uint64_t draw() noexcept;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
