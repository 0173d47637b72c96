// Simulated pages: granted from the host's simulated memory, owned and tracked page by page. Clauses P1 to P5.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstddef>
#include <expected>

namespace holdfast::inline HOLDFAST_ABI::platform {

class pages {
 public:
  std::size_t page_size() const noexcept;
  std::expected<std::byte*, int> allocate(std::size_t bytes) noexcept;
  void free(std::byte* base, std::size_t bytes) noexcept;
  bool tombstone(std::byte* base, std::size_t bytes) noexcept;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
