// Names of other processes, and of memory in them.
//
// Why this exists: an address, a host name or raw key bytes may all be equal after a restart. Whatever names a
// peer or its memory carries the incarnation of the run that issued it, and is compared before anything acts.
//
// Ownership   Descriptions only: holding one keeps nothing alive and frees nothing.
// Units       Bytes; addresses are the owner's.
// Threading   Values.
// Failure     None.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace holdfast::inline HOLDFAST_ABI {

/// One run of one process.
struct peer_id {
  std::uint64_t worker_id = 0;
  std::uint64_t incarnation = 0;
  friend auto operator<=>(const peer_id&, const peer_id&) = default;
};

/// Bytes that a peer needs to address a registration. Fixed capacity: a key that is larger fails the map.
class packed_key {
 public:
  static constexpr std::size_t bytes_max = 256;
  /// False: too large, unchanged.
  bool assign(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() > bytes_max) return false;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes_[i] = bytes[i];
    size_ = static_cast<std::uint16_t>(bytes.size());
    return true;
  }
  std::span<const std::byte> bytes() const noexcept { return {bytes_.data(), size_}; }
  friend bool operator==(const packed_key& a, const packed_key& b) noexcept {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i)
      if (a.bytes_[i] != b.bytes_[i]) return false;
    return true;
  }

 private:
  std::array<std::byte, bytes_max> bytes_{};
  std::uint16_t size_ = 0;
};

/// Where bytes are in another process. No conversion to anything that owns.
struct remote_reference {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  packed_key key;
  std::uint64_t generation = 0;
  std::uint64_t incarnation = 0;
};

}  // namespace holdfast::inline HOLDFAST_ABI
