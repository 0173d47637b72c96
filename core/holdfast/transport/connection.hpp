// The record of one connection. Belongs to the progress thread; only `connection_set` touches it.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/transport/directory.hpp>
#include <holdfast/transport/hello.hpp>
#include <holdfast/transport/loss_watch.hpp>
#include <holdfast/transport/operation.hpp>
#include <holdfast/transport/wire.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::transport {

class connect_request;
class close_request;
class connection_set;
class transfer;

/// In the order of the event `endpoint_state`.
enum class endpoint_state : std::uint8_t { open, failed, flushing, forced, destroyed, parked };

/// In the order of the event `endpoint_state`.
enum class endpoint_lane : std::uint8_t { control, data };

/// A key unpacked for one connection; kept until the connection ends or room is needed (spec/transport 4.8, 7.9).
struct cached_key {
  std::uint64_t id = 0;
  std::uint64_t generation = 0;
  std::uint64_t incarnation = 0;
  packed_key bytes;
  wire_key handle = nullptr;
  wire_endpoint via = nullptr;  // unpacked for this endpoint; compared only
  unsigned uses = 0;            // transfers posted with it
  bool condemned = false;
  cached_key* next = nullptr;  // newest first
};

/// The bytes of our hello must live until the library is done with them, so they stand in the record (F20).
class hello_operation final : public operation {
 public:
  encoded_hello message;
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

struct connection;
struct data_endpoint;

/// What the library gives back about an endpoint.
struct endpoint_cookie {
  connection* of = nullptr;       // null: a data endpoint that no connection uses
  data_endpoint* data = nullptr;  // null: a control endpoint
};

/// The endpoint for transfers through shared memory to one life of a peer. It never reports that life's end and is never
/// closed, so it belongs to no connection: one at a time uses it, and when that ends the next to the same life takes it
/// over (decision 52). The set owns it until the worker is destroyed.
struct data_endpoint {
  wire_endpoint handle = nullptr;
  std::uint64_t id = 0;
  endpoint_state is = endpoint_state::open;
  bool failed = false;  // nobody takes it over
  peer_id peer;
  std::uint64_t connection = 0;  // number of who uses it, or used it last
  endpoint_cookie cookie;
  transfer* first = nullptr;  // posted on it, in order; those of connections that ended are orphaned
  transfer* last = nullptr;
  data_endpoint* next = nullptr;  // newest first
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
  endpoint_cookie cookie;
  data_endpoint* data = nullptr;  // while it uses one
  bool shared_memory = false;     // used one
  /// Bytes of the peer's worker address inside `hello_in`; 0: no memory is shared with it.
  std::size_t shared_address_bytes = 0;

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
  std::array<std::byte, hello_bytes_max> hello_in{};

  hello_operation hello_out;
  close_operation close_out;

  /// Where GETs take turns: the one that is posted on the control endpoint, and those that wait, in order. They are
  /// queued still: nothing was handed to the library, and their end says so.
  transfer* turn = nullptr;
  transfer* waiting_first = nullptr;
  transfer* waiting_last = nullptr;

  std::uint64_t outstanding = 0;  // transfers posted on it
  std::uint64_t orphaned = 0;     // of them, those whose waiters were told
  /// Closed, and only kept for what a late callback or the worker's destruction ends: orphaned transfers.
  bool ended = false;
  cached_key* keys = nullptr;
  std::size_t key_count = 0;
  bool keys_to_destroy = false;  // condemned keys whose last use ended inside a callback

  /// A call came back since somebody last looked; when the silence began; whether it was told.
  bool heard = false;
  bool suspect_told = false;
  platform::time_point silent_since = platform::never;
  platform::time_point suspect_at = platform::never;

  /// Of the current state; `never` if nothing is waited for.
  platform::time_point deadline = platform::never;
  /// Bound that the closing caller gave.
  platform::time_point close_deadline = platform::never;
  bool forced = false;
  /// Lost to another connection of the same peer; its end is no loss of the peer.
  bool superseded = false;
  /// Null if nobody watches, and once it was sent.
  std::unique_ptr<loss_notice> notice;
  connect_request* connecting_waiters = nullptr;
  close_request* closing_waiters = nullptr;

  connection* previous = nullptr;
  connection* next = nullptr;
  connection* next_dirty = nullptr;
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
