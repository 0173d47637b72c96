// What this machine and this process are, as far as it matters for memory that is registered.
//
// Ownership   Values. Units: bytes, counts. Threading: any. Failure: what cannot be read is left out, or none.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::tool {

/// UINT64_MAX = unlimited.
struct lock_limits {
  std::uint64_t soft_bytes = 0;
  std::uint64_t hard_bytes = 0;
};
lock_limits locked_memory_limits() noexcept;
/// CAP_IPC_LOCK: this process may lock more than its limit. None: the system does not say.
std::optional<bool> may_lock_beyond_limits();

struct operating_system {
  std::string name;          // "Linux 6.1.0"
  std::string architecture;  // "x86_64"
};
operating_system system_name();
std::uint64_t processors();
std::uint64_t memory_bytes();
std::uint64_t page_bytes();

struct mapping_count {
  std::uint64_t in_use = 0;
  std::optional<std::uint64_t> limit;  // vm.max_map_count
};
mapping_count mappings();

struct numa_node {
  std::uint64_t id = 0;
  std::string processors;  // "0-15,32-47"
  std::uint64_t total_bytes = 0, free_bytes = 0;
};
std::vector<numa_node> numa_nodes();

struct huge_page_pool {
  std::uint64_t page_bytes = 0, pages = 0, free_pages = 0;
};
std::vector<huge_page_pool> huge_pages();
/// "always", "madvise", "never"; empty: the system has none.
std::string transparent_huge_pages();

/// Whether pages can be kept from children (MADV_DONTFORK), tried with one page.
bool pages_can_be_kept_from_children() noexcept;

struct signal_owner {
  std::string signal;  // "SIGSEGV"
  std::string owner;   // "default", "ignored", or the library or program of the handler
};
/// Of SIGSEGV, SIGBUS and SIGHUP, which libraries like to take.
std::vector<signal_owner> signal_owners();

struct nic_port {
  std::uint64_t number = 0;
  std::string state;  // "ACTIVE"
  std::string link;   // "InfiniBand", "Ethernet"
};
struct nic {
  std::string name;
  std::string firmware;
  std::vector<nic_port> ports;
};
/// That the kernel knows.
std::vector<nic> nics();

/// The value of a variable, or none.
std::optional<std::string> variable(const char* name);

/// The build id of this program, hexadecimal; empty: it has none.
std::string program_build_id();

/// "64 B", "16 KiB", "32 MiB": exact.
std::string bytes_text(std::uint64_t bytes);
/// "23.5 GiB": for reading.
std::string about_bytes_text(std::uint64_t bytes);

}  // namespace holdfast::tool
