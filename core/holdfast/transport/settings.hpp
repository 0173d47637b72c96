// What an operator may set of a transport, with defaults and limits.
//
// Why this exists: a limit that is not checked when it is set is found by the first peer that breaks it.
//
// Ownership   A plain value, copied by the transport.
// Units       Durations in nanoseconds (std::chrono), sizes in bytes, counts.
// Threading   A value.
// Failure     `validate` names the setting, its value and its range.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/platform/clock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::transport {

struct settings {
  /// Numeric address and port, "127.0.0.1:0" or "[::1]:0"; port 0 lets the system choose.
  std::string listen_address = "127.0.0.1:0";
  /// Name of this process that peers see; 0 draws one from the host's identity seed.
  std::uint64_t worker_id = 0;
  /// Number of this run; 0 draws one. The runtime passes its own, so that references and hello agree.
  std::uint64_t incarnation = 0;
  /// Number of this context-and-worker lifetime inside one runtime, from 1.
  std::uint64_t epoch = 1;

  /// Spinning before sleeping; 0 sleeps at once. At most 10 ms.
  platform::duration progress_spin = std::chrono::microseconds(50);
  /// Progress calls between two looks at the submission queue, 1 to 65536.
  unsigned progress_batch = 256;
  /// Transfers in the table at once, 16 to 2^24.
  std::size_t max_operations = 65536;
  /// Accepted and initiated connections, at least 2 (the start-up probe needs a pair), at most 65536.
  std::size_t max_connections = 4096;
  /// Unpacked keys of one connection, 1 to 65536.
  std::size_t max_keys = 4096;
  /// From the first try to the accepted hello, 10 ms to 10 min.
  platform::duration connect_timeout = std::chrono::seconds(10);
  /// Bound of a flushing close, above 0.
  platform::duration close_timeout = std::chrono::seconds(2);
  /// Bound of the whole start-up, probes included, above 0.
  platform::duration startup_timeout = std::chrono::seconds(10);
  /// Bound of one GET of the start-up probe, above 0.
  platform::duration probe_timeout = std::chrono::seconds(5);
  /// Largest GET of the start-up probe; sizes above it are not tried. 0 skips the probe: GET counts as absent.
  std::size_t probe_bytes_max = std::size_t{1} << 20;
  /// Whether destroying a worker ends every write of its operations (true where our own progress does the writing).
  bool destroy_is_fence = true;
};

/// The first setting that is out of its range, as `invalid_argument`.
result<void> validate(const settings& values) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::transport
