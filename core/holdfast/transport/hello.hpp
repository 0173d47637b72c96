// The first message of a connection: who we are, in a fixed form.
//
// Why this exists: only a peer's hello makes an identity, an address never does. The form is fixed and decoded
// strictly, because everything a peer sends is bounded and validated before it is acted on (spec/transport 7.5).
//
// Layout, little-endian, 120 bytes and the address:
//    0  4  magic                      40  2+2+2  library version      64  4  largest control message
//    4  1  form, 2                    46  2      zero                 68  4  largest payload frame
//    5  1  zero                       48  8      sender's connection  72  4  requests admitted
//    6  2  bytes of the whole message 56  8      features             76  4  bytes received and not yet handled
//    8  2  lowest protocol version    16  8  worker id                80 16  boot of the machine, zeros: unknown
//   10  2  highest protocol version   24  8  incarnation              96  8  device of its memory file system
//   12  4  zero                       32  8  transport epoch         104  8  number of a file there
//  112  2  bytes of the address       114 6  zero                    120  n  worker address for a data endpoint, n <= 1024
//
// Form 2 is protocol version 2. Version 1 had no machine and no address; it was never released and is refused as
// `version` (docs/decisions/0040).
//
// Ownership   Values.
// Units       Bytes.
// Threading   Pure functions.
// Failure     The reason that the event of a refusal names.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/peer.hpp>
#include <holdfast/platform/process.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

namespace holdfast::inline HOLDFAST_ABI::transport {

/// The active-message id of a hello.
inline constexpr std::uint16_t hello_kind = 1;
/// Of the fixed part, and of the largest message.
inline constexpr std::size_t hello_bytes = 120;
inline constexpr std::size_t worker_address_max = 1024;
inline constexpr std::size_t hello_bytes_max = hello_bytes + worker_address_max;
/// What the bytes of a hello mean, and what both sides must have in common before anything else is sent. 3: segments of
/// 516 KiB over tcp (backends/ucx/load.cpp), which a process with smaller ones would not survive.
inline constexpr std::uint8_t hello_form = 3;
/// Protocol versions that this build speaks.
inline constexpr std::uint16_t protocol_version_low = 2;
inline constexpr std::uint16_t protocol_version_high = 2;

/// In the order of the event `hello_refused`.
enum class hello_refusal : std::uint8_t { magic, version, limits, identity, self, expected, old };

/// What a side admits; each connection works with the minimum of both sides.
struct connection_limits {
  std::uint32_t control_message_max = 16u << 10;  // 1 to 64 KiB
  std::uint32_t chunk_max = 1u << 20;             // 4 KiB to 16 MiB
  std::uint32_t requests_max = 1024;              // 1 to 65536
  std::uint32_t receive_bytes_max = 16u << 20;    // at least chunk_max + control_message_max
};

struct hello {
  std::uint16_t version_low = protocol_version_low;
  std::uint16_t version_high = protocol_version_high;
  peer_id sender;
  std::uint64_t epoch = 1;
  std::uint16_t library_major = 0, library_minor = 0, library_release = 0;
  /// The sender's own number of this connection: the initiator's decides between two of one peer.
  std::uint64_t connection = 0;
  /// Bits unknown to the receiver are ignored.
  std::uint64_t features = 0;
  connection_limits limits;
  /// Where the sender runs; unknown if it shares no memory.
  platform::machine_identity machine;
  /// Its worker's address, at most `worker_address_max` bytes; empty: no data endpoint to it. Points into the caller's
  /// bytes.
  std::span<const std::byte> worker_address;

  /// Highest version both speak; `decode_hello` made sure that there is one.
  std::uint16_t common_version() const noexcept {
    return version_high < protocol_version_high ? version_high : protocol_version_high;
  }
};

struct encoded_hello {
  std::array<std::byte, hello_bytes_max> bytes{};
  std::size_t size = 0;
  std::span<const std::byte> whole() const noexcept { return {bytes.data(), size}; }
};

/// An address that is too long is left out.
void encode_hello(const hello& message, encoded_hello& out) noexcept;

/// Accepts exactly what `encode_hello` of a compatible peer makes. Identity rules that need context (self,
/// expected, old) are the caller's. Never reads outside `bytes`.
std::expected<hello, hello_refusal> decode_hello(std::span<const std::byte> bytes) noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::transport
