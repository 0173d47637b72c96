// Everything that holdfast-info found, before it is shown.
//
// Why this exists: text and document say the same.
//
// Ownership   Values. Units: bytes, counts. Threading: one thread. Failure: what cannot be found says why, or is left out.
#pragma once

#include <holdfast/platform/abi.hpp>

#include "tool/machine.hpp"

#include <holdfast/options/configuration.hpp>

#include <string>
#include <vector>

namespace holdfast::info {

struct lane {
  std::string transport, device;
  bool allowed = false;  // by transport.transports and transport.devices
};

struct backend {
  std::string kind;
  bool found = false;
  std::string version;
  std::string text;  // what it is good for, or why it is absent
  std::vector<lane> lanes;
};

struct findings {
  std::string version, build;
  std::vector<backend> backends;
  std::vector<tool::nic> nics;

  tool::operating_system system;
  std::uint64_t processors = 0, memory_bytes = 0, page_bytes = 0;
  std::vector<tool::huge_page_pool> huge_pages;
  std::string transparent_huge_pages;
  std::vector<tool::numa_node> numa_nodes;

  tool::lock_limits locked;
  std::optional<bool> may_lock_more;
  tool::mapping_count mappings;

  bool pages_can_be_kept_from_children = false;
  /// The process's mmap or munmap jumps to somebody else.
  bool memory_functions_patched = false;
  std::vector<tool::signal_owner> signals;
  /// UCX's own variables, as they were before it was loaded: "UCX_TLS=tcp".
  std::vector<std::string> ucx_variables;

  std::string file;  // empty: none
  holdfast::options::configuration configuration;
  /// What does not fit together, each a sentence.
  std::vector<std::string> warnings;
};

/// Loads UCX, in this process.
findings find(holdfast::options::configuration configuration);

std::string to_text(const findings& all);
std::string to_json(const findings& all);

}  // namespace holdfast::info
