// The address range in which the memory of all simulated hosts lies.
//
// Why this exists: programs under test use plain pointers, so simulated pages need real bytes; and no address may
// differ between two runs of a program that compares or aligns them. One reservation per process at an address from a
// short list, cut into one slot for each host; blocks inside a slot are placed by the host alone.
//
// Ownership   Process-wide, never given back. Bytes stay mapped between worlds.
// Units       Bytes.
// Threading   One OS thread, kernel scope.
// Failure     A process that cannot reserve the range says so and ends: nothing simulated can run in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace holdfast::sim {

class address_space {
 public:
  /// Reserves on first use.
  static address_space& get();
  address_space(const address_space&) = delete;
  address_space& operator=(const address_space&) = delete;

  /// The part that belongs to the host with this index: 1 GiB for the first 32 hosts, 32 MiB for the next 1,000.
  /// Empty beyond.
  std::span<std::byte> slot(std::uint16_t host_index) const noexcept;
  /// Makes [base, base + bytes) readable, writable and zero. False: the system has no memory.
  /// Only what was granted before and touched since is written, so that granting much and touching little is cheap.
  bool grant(std::byte* base, std::size_t bytes);
  /// The program may not touch the range any more (seen by AddressSanitizer; bytes stay mapped).
  void withdraw(std::byte* base, std::size_t bytes) noexcept;
  /// Zeroes a range that is in use.
  void clear(std::byte* base, std::size_t bytes) noexcept;

 private:
  address_space();
  std::byte* base_ = nullptr;
};

/// Copies like a device: no sanitizer watches it, since device and program are ordered by other means, and the
/// checks of host_memory decide what is allowed.
void device_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

}  // namespace holdfast::sim
