#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/ucx/load.hpp>
#include <holdfast/platform/driver_library.hpp>
#include <holdfast/telemetry/emit.hpp>

#include <cstdio>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::ucx {

namespace {

// Read when the library is loaded; the configuration object comes too late for them.
constexpr platform::environment_setting before_loading[] = {
    {"UCX_MEM_EVENTS", "n"},
    {"UCX_HANDLE_ERRORS", "none"},
    {"UCX_DEBUG_SIGNO", "0"},
    // A process that comes back under its address finds connections of its former life there, which the system keeps for
    // a minute. Read when a worker is made, and from nowhere else.
    {"UCX_TCP_CM_REUSEADDR", "y"},
    // Replies to GETs over tcp go in segments, a call of the system and a copy for each; the library's own 8 KiB make large
    // ones three times as long. A segment longer than the receiver's buffer ends the receiver's process, so both are set
    // here, always, and processes that set them otherwise have another version of the protocol (transport/hello.hpp).
    {"UCX_TCP_TX_SEG_SIZE", "516k"},
    {"UCX_TCP_RX_SEG_SIZE", "516k"},
};
// In the same order.
constexpr overridden_setting names[] = {overridden_setting::mem_events,   overridden_setting::handle_errors,
                                        overridden_setting::debug_signal, overridden_setting::tcp_reuse,
                                        overridden_setting::tcp_send,     overridden_setting::tcp_receive};
static_assert(std::size(before_loading) == std::size(names));

}  // namespace

void warn_if_overridden(event_log& log, overridden_setting which, const char* variable, const char* ours) {
  const std::string found = platform::environment_value(variable);
  if (!found.empty() && found != ours) emit::setting_overridden(log, static_cast<std::uint64_t>(which));
}

result<ucp_table> load_ucp(event_log& log, const char* library) {
  for (std::size_t i = 0; i < std::size(names); ++i)
    warn_if_overridden(log, names[i], before_loading[i].name, before_loading[i].value);
  const auto opened = platform::driver_library::open(library, before_loading);
  if (!opened) return fail_with_words(error_code::absent, "ucx.load", "transport.ucx_library: " + opened.error());

  ucp_table table;
  const char* missing = nullptr;
#define HOLDFAST_UCP(function)                                                            \
  table.function = reinterpret_cast<decltype(table.function)>(opened->symbol(#function)); \
  if (table.function == nullptr && missing == nullptr) missing = #function;
  HOLDFAST_UCP_FUNCTIONS(HOLDFAST_UCP)
#undef HOLDFAST_UCP
#define HOLDFAST_UCP(function) table.function = reinterpret_cast<decltype(table.function)>(opened->symbol(#function));
  HOLDFAST_UCP_OPTIONAL_FUNCTIONS(HOLDFAST_UCP)
#undef HOLDFAST_UCP
  table.ucs_status_string = reinterpret_cast<decltype(table.ucs_status_string)>(opened->symbol("ucs_status_string"));
  char words[sizeof(error::words)];
  if (missing != nullptr) {
    std::snprintf(words, sizeof(words), "transport.ucx_library: it has no %s", missing);
    return fail_with_words(error_code::absent, "ucx.load", words);
  }

  unsigned major = 0, minor = 0, release = 0;
  table.ucp_get_version(&major, &minor, &release);
  if (major != UCP_API_MAJOR || minor < UCP_API_MINOR) {
    std::snprintf(words, sizeof(words), "transport.ucx_library: it is UCX %u.%u.%u, wanted is %d.%d", major, minor,
                  release, UCP_API_MAJOR, UCP_API_MINOR);
    return fail_with_words(error_code::absent, "ucx.load", words);
  }
  return table;
}

}  // namespace holdfast::inline HOLDFAST_ABI::ucx
