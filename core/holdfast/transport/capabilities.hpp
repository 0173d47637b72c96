// What a transport found out about its library, its process and its machine when it started.
//
// Why this exists: nothing is inferred from a version or a variable where it can be tried; what was tried is told once,
// as a value for programs and as one event for logs (spec/transport 7.1).
//
// Ownership   A value. Units: bytes. Threading: a value; `to_json` needs memory.
// Failure     What could not be found out counts as absent.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/platform/process.hpp>
#include <holdfast/transport/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::transport {

struct capabilities {
  wire_versions library;
  wire_facts wire;
  /// Newer than any version that was tried with this release: it runs if the probes pass.
  bool untested_version = false;
  bool get_works = false;
  bool get_uses_memh = false;
  /// GETs over a data endpoint to ourselves worked; peers of this machine are offered one.
  bool shares_memory = false;
  bool destroy_is_fence = false;
  /// Two registrations of one range are two: no cache of the library answers for them.
  bool registrations_distinct = false;
  /// Ways in which the probe's GETs came back.
  bool inline_exit_seen = false;
  bool callback_exit_seen = false;
  platform::process_facts process;
  platform::fork_guard fork = platform::fork_guard::none;
  /// Why not, if not; none: it works, or was not wanted.
  std::optional<error> get_absent_because;
  std::optional<error> shared_memory_absent_because;

  /// Bits from the lowest, in the order of the flags above, then `process.memory_functions_patched`.
  std::uint64_t flags() const noexcept;
  std::string to_json() const;
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
