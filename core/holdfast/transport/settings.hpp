// What an operator may set of a transport, with defaults and limits.
//
// Why this exists: a limit that is not checked when it is set is found by the first peer that breaks it.
//
// Defaults and limits are those of options/options.def.
//
// Ownership   A plain value, copied by the transport.
// Units       Durations in nanoseconds (std::chrono), sizes in bytes, counts.
// Threading   A value.
// Failure     `validate` names the setting, its value and its range.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/options/defaults.hpp>
#include <holdfast/platform/clock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::transport {

struct settings {
  /// Numeric address and port, "127.0.0.1:0" or "[::1]:0"; port 0 lets the system choose.
  std::string listen_address = options::initial::transport::listen_address;
  /// Name of this process that peers see; 0 draws one from the host's identity seed.
  std::uint64_t worker_id = options::initial::transport::worker_id;
  /// Number of this run; 0 draws one. The runtime passes its own, so that references and hello agree.
  std::uint64_t incarnation = 0;
  /// Number of this context-and-worker lifetime inside one runtime, from 1.
  std::uint64_t epoch = 1;

  /// Spinning before sleeping; 0 sleeps at once.
  platform::duration progress_spin{options::initial::transport::progress_spin};
  /// Progress calls between two looks at the submission queue.
  unsigned progress_batch = options::initial::transport::progress_batch;
  /// Transfers in the table at once.
  std::size_t max_operations = options::initial::transport::max_operations;
  /// Accepted and initiated connections; the start-up probe needs a pair.
  std::size_t max_connections = options::initial::transport::max_connections;
  /// Unpacked keys of one connection.
  std::size_t max_keys = options::initial::transport::max_keys;
  /// From the first try to the accepted hello.
  platform::duration connect_timeout{options::initial::transport::connect_timeout};
  /// Bound of a flushing close.
  platform::duration close_timeout{options::initial::transport::close_timeout};
  /// Bound of the whole start-up, probes included.
  platform::duration startup_timeout{options::initial::transport::startup_timeout};
  /// Bound of one GET of the start-up probe.
  platform::duration probe_timeout{options::initial::transport::probe_timeout};
  /// Largest GET of the start-up probe; sizes above it are not tried. 0 skips the probe: GET counts as absent.
  std::size_t probe_bytes_max = options::initial::transport::probe_bytes_max;
  /// Whether GETs from processes of this machine go through its memory, over an endpoint of their own.
  bool shared_memory = options::initial::transport::shared_memory;
  /// Silence of a peer with operations outstanding that raises an event, from 100 ms; 0: never.
  platform::duration peer_suspect_after{options::initial::transport::peer_suspect_after};
  /// Address space that is registered, or was and is kept for late readers; beyond it maps are refused.
  std::uint64_t tombstone_bytes_max = options::initial::transport::tombstone_bytes_max;
  /// Whether destroying a worker ends every write of its operations (true where our own progress does the writing).
  bool destroy_is_fence = true;
};

/// Settings as the event `setting_without_effect` names them.
enum class setting_number : std::uint8_t {
  shared_memory = 1,
  registration_cache = 2,
  rails = 3,
  devices = 4,
  fork_policy = 5
};

/// The first setting that is out of its range, as `out_of_range`; words as options/check.hpp says.
result<void> validate(const settings& values) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::transport
