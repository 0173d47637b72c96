// Real pages: anonymous mappings. Clauses P1 to P5.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstddef>
#include <expected>

namespace holdfast::inline HOLDFAST_ABI::platform {

class pages {
 public:
  /// Bytes of one page of the system, a power of two.
  std::size_t page_size() const noexcept;
  /// A zeroed mapping of `bytes` (a multiple of the page size), excluded from forked children.
  /// The error is an errno value; nothing is mapped then.
  std::expected<std::byte*, int> allocate(std::size_t bytes) noexcept;
  /// Gives the range back to the system; the address may be reused by anybody at once.
  void free(std::byte* base, std::size_t bytes) noexcept;
  /// Gives the pages back but keeps the addresses, reading as zeros, so that a late reader neither faults
  /// nor sees another tenant (spec/transport 7.20). False: could not; the range is unchanged.
  bool tombstone(std::byte* base, std::size_t bytes) noexcept;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
