// The system calls by which ordinary memory is kept in place, as a table.
//
// Why this exists: they are this backend's driver, and a test or a simulated machine puts its own in their place.
//
// Ownership   Constants.
// Units       Bytes.
// Threading   Callable from any thread.
// Failure     As the calls of the system: 0, or an errno value.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstddef>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI {

struct memory_calls {
  /// Keeps the pages of a range resident. 0 or an errno value.
  int (*lock)(const void* address, std::size_t bytes) noexcept;
  /// Takes that back. 0 or an errno value.
  int (*unlock)(const void* address, std::size_t bytes) noexcept;
  /// How much this process may lock; UINT64_MAX = unlimited.
  std::uint64_t (*limit)() noexcept;
};

/// The calls of the machine this process runs on.
const memory_calls& system_memory_calls() noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI
