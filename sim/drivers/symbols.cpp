#include <sim/drivers/symbols.hpp>

#include <sim/drivers/ucp_double.hpp>

#include <array>
#include <type_traits>

namespace holdfast::sim {

namespace {

struct symbol {
  std::string_view name;
  void* address;
};

const char* status_string(ucs_status_t status) noexcept {
  switch (status) {
    case UCS_OK: return "Success";
    case UCS_INPROGRESS: return "Operation in progress";
    case UCS_ERR_NO_RESOURCE: return "No resources are available to initiate the operation";
    case UCS_ERR_IO_ERROR: return "Input/output error";
    case UCS_ERR_NO_MEMORY: return "Out of memory";
    case UCS_ERR_INVALID_PARAM: return "Invalid parameter";
    case UCS_ERR_UNREACHABLE: return "Destination is unreachable";
    case UCS_ERR_INVALID_ADDR: return "Address not valid";
    case UCS_ERR_BUSY: return "Device is busy";
    case UCS_ERR_CANCELED: return "Request canceled";
    case UCS_ERR_NO_DEVICE: return "No such device";
    case UCS_ERR_EXCEEDS_LIMIT: return "Requested value exceeds the limit";
    case UCS_ERR_UNSUPPORTED: return "Unsupported operation";
    case UCS_ERR_REJECTED: return "Operation rejected by remote peer";
    case UCS_ERR_CONNECTION_RESET: return "Connection reset by remote peer";
    case UCS_ERR_ENDPOINT_TIMEOUT: return "Endpoint timeout";
    default: return "Unknown error";
  }
}

#define HOLDFAST_UCP(name)                                                      \
  static_assert(std::is_same_v<decltype(&ucp_double::name), decltype(&::name)>, \
                "the double of " #name " differs from the header");
HOLDFAST_UCP_FUNCTIONS(HOLDFAST_UCP)
HOLDFAST_UCP_OPTIONAL_FUNCTIONS(HOLDFAST_UCP)
#undef HOLDFAST_UCP

const auto ucp_symbols = std::to_array<symbol>({
#define HOLDFAST_UCP(name) {#name, reinterpret_cast<void*>(&ucp_double::name)},
    HOLDFAST_UCP_FUNCTIONS(HOLDFAST_UCP) HOLDFAST_UCP_OPTIONAL_FUNCTIONS(HOLDFAST_UCP)
#undef HOLDFAST_UCP
});

}  // namespace

bool has_driver_library(std::string_view library) noexcept {
  return library == "libucp.so.0" || library == "libucs.so.0";
}

void* find_driver_symbol(std::string_view library, std::string_view name) noexcept {
  if (!has_driver_library(library)) return nullptr;
  // libucp brings libucs with it, so a look-up in either finds what libucs exports.
  if (name == "ucs_status_string") return reinterpret_cast<void*>(&status_string);
  if (library != "libucp.so.0") return nullptr;
  for (const symbol& s : ucp_symbols) {
    if (s.name == name) return s.address;
  }
  return nullptr;
}

}  // namespace holdfast::sim
