// UCX behind the transport's interface to a communication library.
//
// Why this exists: every call here is one or two calls of UCX and decides nothing; what is decided stands in
// transport/, against transport/wire.hpp.
//
// Ownership   The wire owns context, worker, listener, endpoints, keys and memory handles of UCX.
// Threading   As transport/wire.hpp says.
// Failure     By value; the library's status and its words in the error.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/ucx/ucp_table.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/telemetry/event_log.hpp>
#include <holdfast/transport/wire.hpp>

#include <memory>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::ucx {

struct wire_settings {
  /// Transports, in UCX's own words; "auto" leaves it to the environment. One endpoint with error mode PEER for each
  /// peer means tcp lanes with UCX 1.13.
  std::string transports = "tcp";
  /// Network devices, by UCX's names; "all" for every one.
  std::string devices = "all";
  /// Whether lanes through the memory of the machine are wanted beside them.
  bool shared_memory = true;
  /// refuse, warn or off: what to do where a fork would take memory away from under a device.
  std::string fork_policy = "refuse";
  /// A longer GET over an endpoint where GETs take turns is fetched in several, one after the other: a reply that fits one
  /// segment cannot end the process that sends it (decision 53). A segment that load.cpp sets, less room for headers.
  std::size_t get_bytes_max = 512 * 1024;
};

/// Whether destroying a worker ends every write of its GETs: true if our own progress does the writing, which is so
/// for tcp and shared memory, and not known for anything else.
bool destroying_is_fence(const wire_settings& values) noexcept;

/// Opens a context. Errors: absent (no thread support, no usable transport), backend.
result<std::unique_ptr<transport::wire>> make_wire(const ucp_table& table, event_log& log, const wire_settings& values);

}  // namespace holdfast::inline HOLDFAST_ABI::ucx
