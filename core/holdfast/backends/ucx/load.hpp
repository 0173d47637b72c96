// Loads UCX, with its environment set right before.
//
// Why this exists: libucs reads its environment when it is loaded, and then patches mmap and munmap of the process and
// installs signal handlers, unless it was told not to. So the variables are set first and the library is loaded at run
// time; a machine without UCX is a reason in an error, not a program that does not start.
//
// Ownership   The library is never unloaded; the table is a value.
// Threading   Changes the process's environment: call it where nobody reads or changes it at the same time.
// Failure     `absent`, with one sentence: no library, a library older than the header this was compiled with, or one
//             that lacks a function.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/ucx/ucp_table.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::ucx {

/// The settings of ours that win over the operator's, as the event `setting_overridden` names them.
enum class overridden_setting : std::uint8_t {
  mem_events = 1,     // UCX_MEM_EVENTS=n: no patching of mmap and munmap
  handle_errors = 2,  // UCX_HANDLE_ERRORS=none: no handlers for SIGSEGV and its like
  debug_signal = 3,   // UCX_DEBUG_SIGNO=0: no handler for SIGHUP
  rcache = 4,         // UCX_RCACHE_ENABLE=n: registrations are ours to count
  transports = 5,     // UCX_TLS: what the options say
  rails = 6,          // UCX_MAX_RMA_RAILS=1, from 1.14 on
  tcp_reuse = 7,      // UCX_TCP_CM_REUSEADDR=y: a process comes back under its address
  devices = 8,        // UCX_NET_DEVICES: what the options say
  tcp_send = 9,       // UCX_TCP_TX_SEG_SIZE=516k: large GETs over tcp
  tcp_receive = 10,   // UCX_TCP_RX_SEG_SIZE=516k: no less than any peer sends
};

inline constexpr const char* default_library = "libucp.so.0";

/// `library`: file name for the loader.
result<ucp_table> load_ucp(event_log& log, const char* library = default_library);

/// Whether the operator had set the variable to something else than `ours`; says so by event.
void warn_if_overridden(event_log& log, overridden_setting which, const char* variable, const char* ours);

}  // namespace holdfast::inline HOLDFAST_ABI::ucx
