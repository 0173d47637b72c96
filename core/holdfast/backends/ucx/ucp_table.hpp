// The functions of UCX that this project calls, as a table of pointers.
//
// Why this exists: UCX is loaded at run time, after its environment is right; and the simulator fills the same
// table with a double. Types come from UCX's own header, so a wrong signature does not compile.
//
// Ownership   Filled once by `load_ucp`; the library behind it is never unloaded.
// Threading   Immutable after loading.
// Failure     A function that the library does not export is null; `load_ucp` says which ones are required.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <ucp/api/ucp.h>

#include <cstdio>

namespace holdfast::inline HOLDFAST_ABI::ucx {

// HOLDFAST_UCP(function): required. One list, so that loader and double cannot disagree.
#define HOLDFAST_UCP_FUNCTIONS(HOLDFAST_UCP)   \
  HOLDFAST_UCP(ucp_get_version)                \
  HOLDFAST_UCP(ucp_get_version_string)         \
  HOLDFAST_UCP(ucp_config_read)                \
  HOLDFAST_UCP(ucp_config_modify)              \
  HOLDFAST_UCP(ucp_config_release)             \
  HOLDFAST_UCP(ucp_init_version)               \
  HOLDFAST_UCP(ucp_context_query)              \
  HOLDFAST_UCP(ucp_cleanup)                    \
  HOLDFAST_UCP(ucp_worker_create)              \
  HOLDFAST_UCP(ucp_worker_query)               \
  HOLDFAST_UCP(ucp_worker_destroy)             \
  HOLDFAST_UCP(ucp_worker_get_efd)             \
  HOLDFAST_UCP(ucp_worker_arm)                 \
  HOLDFAST_UCP(ucp_worker_progress)            \
  HOLDFAST_UCP(ucp_worker_set_am_recv_handler) \
  HOLDFAST_UCP(ucp_listener_create)            \
  HOLDFAST_UCP(ucp_listener_query)             \
  HOLDFAST_UCP(ucp_listener_reject)            \
  HOLDFAST_UCP(ucp_listener_destroy)           \
  HOLDFAST_UCP(ucp_ep_create)                  \
  HOLDFAST_UCP(ucp_ep_close_nbx)               \
  HOLDFAST_UCP(ucp_ep_rkey_unpack)             \
  HOLDFAST_UCP(ucp_rkey_destroy)               \
  HOLDFAST_UCP(ucp_mem_map)                    \
  HOLDFAST_UCP(ucp_mem_query)                  \
  HOLDFAST_UCP(ucp_mem_unmap)                  \
  HOLDFAST_UCP(ucp_rkey_pack)                  \
  HOLDFAST_UCP(ucp_rkey_buffer_release)        \
  HOLDFAST_UCP(ucp_get_nbx)                    \
  HOLDFAST_UCP(ucp_am_send_nbx)                \
  HOLDFAST_UCP(ucp_request_free)               \
  HOLDFAST_UCP(ucp_request_check_status)

// Optional: null where the library does not have them. Without the first two no lane over shared memory is offered to
// peers; without the last nobody says what a context can use.
#define HOLDFAST_UCP_OPTIONAL_FUNCTIONS(HOLDFAST_UCP) \
  HOLDFAST_UCP(ucp_worker_get_address)                \
  HOLDFAST_UCP(ucp_worker_release_address)            \
  HOLDFAST_UCP(ucp_context_print_info)

struct ucp_table {
#define HOLDFAST_UCP(function) decltype(&::function) function = nullptr;
  HOLDFAST_UCP_FUNCTIONS(HOLDFAST_UCP)
  HOLDFAST_UCP_OPTIONAL_FUNCTIONS(HOLDFAST_UCP)
#undef HOLDFAST_UCP
  /// From libucs, which libucp brings with it; null = statuses are shown as numbers.
  const char* (*ucs_status_string)(ucs_status_t status) = nullptr;
};

}  // namespace holdfast::inline HOLDFAST_ABI::ucx
