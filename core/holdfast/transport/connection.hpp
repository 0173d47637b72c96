// The record of one connection. Belongs to the progress thread; only `connection_set` touches it.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/transport/directory.hpp>
#include <holdfast/transport/hello.hpp>
#include <holdfast/transport/operation.hpp>
#include <holdfast/transport/wire.hpp>

#include <array>
#include <cstdint>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::transport {

class connect_request;
class close_request;
class connection_set;

/// In the order of the event `endpoint_state`.
enum class endpoint_state : std::uint8_t { open, failed, flushing, forced, destroyed };

/// In the order of the event `peer_lost`.
enum class loss_reason : std::uint8_t { error, restarted, protocol, declared };

/// A key unpacked for one connection; kept until the connection ends or room is needed (spec/transport 4.8, 7.9).
struct cached_key {
  std::uint64_t id = 0;
  std::uint64_t generation = 0;
  std::uint64_t incarnation = 0;
  packed_key bytes;
  wire_key handle = nullptr;
  unsigned uses = 0;  // transfers posted with it
  bool condemned = false;
  cached_key* next = nullptr;  // newest first
};

/// The bytes of our hello must live until the library is done with them, so they stand in the record (F20).
class hello_operation final : public operation {
 public:
  std::array<std::byte, hello_bytes> bytes{};
  connection* of = nullptr;
  connection_set* set = nullptr;
  bool in_flight = false;

 private:
  void execute() noexcept override {}
  void refuse() noexcept override {}
  void exited(operation_exit exit, int status) noexcept override;
};

class close_operation final : public operation {
 public:
  connection* of = nullptr;
  connection_set* set = nullptr;

 private:
  void execute() noexcept override {}
  void refuse() noexcept override {}
  void exited(operation_exit exit, int status) noexcept override;
};

struct connection {
  std::uint64_t number = 0;
  connection_state state = connection_state::connecting;
  bool initiated = false;
  /// One half of the start-up probe's pair: both ends are this process.
  bool loopback = false;
  /// Where we connected to; empty for an accepted connection.
  std::string address;
  /// What the caller expected; 0 = anything.
  peer_id expected;
  /// Who is there; zeros before its hello was accepted.
  peer_id peer;
  std::uint16_t version = 0;
  connection_limits limits;
  /// The initiator's number, from its hello or our own.
  std::uint64_t initiator_number = 0;

  wire_endpoint endpoint = nullptr;
  std::uint64_t endpoint_id = 0;
  endpoint_state endpoint_is = endpoint_state::destroyed;

  // What callbacks recorded, to be acted on in a later step of the loop.
  bool dirty = false;
  bool endpoint_failed = false;
  int failure_status = 0;
  bool hello_sent = false;
  bool hello_send_failed = false;
  bool hello_arrived = false;
  bool hello_oversized = false;
  bool violated = false;
  std::size_t violation_bytes = 0;
  bool close_ended = false;
  std::size_t hello_size = 0;
  std::array<std::byte, hello_bytes> hello_in{};

  hello_operation hello_out;
  close_operation close_out;

  std::uint64_t outstanding = 0;  // transfers posted on it
  cached_key* keys = nullptr;
  std::size_t key_count = 0;
  bool keys_to_destroy = false;  // condemned keys whose last use ended inside a callback

  /// Of the current state; `never` if nothing is waited for.
  platform::time_point deadline = platform::never;
  /// Bound that the closing caller gave.
  platform::time_point close_deadline = platform::never;
  bool forced = false;
  /// Lost to another connection of the same peer; its end is no loss of the peer.
  bool superseded = false;
  connect_request* connecting_waiters = nullptr;
  close_request* closing_waiters = nullptr;

  connection* previous = nullptr;
  connection* next = nullptr;
  connection* next_dirty = nullptr;
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
