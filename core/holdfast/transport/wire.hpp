// What the transport's state machines need of a communication library, in the library's own terms.
//
// Why this exists: connections, operations and teardown are decided in transport/; backends/ucx only turns these
// calls into ucp_* calls. Every function here maps to one or two functions of the library, so that nothing is
// decided twice.
//
// Ownership   Handles are the wire's; each is ended by the call named beside it, once.
// Units       Bytes.
// Threading   [P] progress thread only, [R] registration thread only (spec/transport 8.1). Callbacks of `wire_sink`
//             and `wire_operation` run on P, inside `progress` or inside the posting call; they record and enqueue,
//             call nothing of the wire, take no lock above the operation table's, and do not block.
// Failure     By value.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/peer.hpp>
#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/process.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::transport {

/// Opaque handles; null is none.
using wire_endpoint = struct wire_endpoint_tag*;
using wire_key = struct wire_key_tag*;
using wire_region = struct wire_region_tag*;
using wire_connection_request = struct wire_connection_request_tag*;

/// How a posting call ended; the first thing to look at, before anything else touches the record (7.10).
enum class post_exit : std::uint8_t {
  inline_done,  // exit 1: finished, the callback will not run
  posted,       // a request exists: exit 2 by callback, or exit 4 if the worker is destroyed first
  refused,      // exit 3: error, the callback will not run; `status` says which
};

struct posted {
  post_exit exit;
  int status;  // the library's status, 0 = ok
};

/// The record of something handed to the library. Derived classes carry the payload.
class wire_operation {
 public:
  /// Exit 2: any status. The library's request is freed already.
  virtual void called_back(int status) noexcept = 0;
  /// Belongs to the wire from the posting call to the callback.
  void* posted_by = nullptr;

 protected:
  ~wire_operation() = default;
};

/// What the library tells on its own account.
class wire_sink {
 public:
  /// A peer wants a connection; must be accepted or rejected in a later step of the loop.
  virtual void connection_requested(wire_connection_request request) noexcept = 0;
  /// At most once for an endpoint, never after its close was called. `cookie` as given when it was created.
  virtual void endpoint_failed(void* cookie, int status) noexcept = 0;
  /// A hello arrived. `bytes` are valid during the call. `cookie` is the receiving endpoint's, or null if unknown.
  /// `as_descriptor`: the library offers it as a rendezvous descriptor, which is refused.
  virtual void message_received(void* cookie, std::uint16_t kind, std::span<const std::byte> bytes,
                                bool as_descriptor) noexcept = 0;

 protected:
  ~wire_sink() = default;
};

enum class arm_answer : std::uint8_t { armed, busy, failed };

struct wire_versions {
  unsigned major = 0, minor = 0, release = 0;
  std::string text;
};

/// What the library says of itself, and what was done for it before it could say anything.
struct wire_facts {
  std::string transports;
  bool thread_safe = false;
  std::size_t am_header_bytes_max = 0;
  std::size_t worker_address_bytes = 0;
  platform::fork_guard fork = platform::fork_guard::none;
  /// On a control endpoint one GET at a time may be outstanding, or the peer who serves them dies with us (decision 53).
  bool gets_take_turns = false;
};

struct mapped_memory {
  wire_region region = nullptr;  // ended by `unmap`
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  packed_key key;
};

class wire {
 public:
  // Context: created with the wire object, ended by `close_context`.
  virtual const wire_versions& versions() const noexcept = 0;
  virtual bool get_uses_memh() const noexcept = 0;
  /// After the worker was opened.
  virtual const wire_facts& facts() const noexcept = 0;
  /// The library's words for a status.
  virtual std::string_view words(int status) const noexcept = 0;

  // [P] worker
  virtual result<void> open_worker(wire_sink& sink) = 0;
  /// Returned = no callback of this worker ever runs again. May never return.
  virtual void destroy_worker() noexcept = 0;
  virtual int event_descriptor() const noexcept = 0;
  /// Of the lanes through shared memory; -1: there are none.
  virtual int data_event_descriptor() const noexcept = 0;
  virtual unsigned progress() noexcept = 0;
  virtual arm_answer arm() noexcept = 0;
  /// Where other processes of this machine open data endpoints to; empty: not offered. Valid until the worker's end.
  virtual std::span<const std::byte> worker_address() const noexcept = 0;

  // [P] listener and endpoints
  /// "127.0.0.1:0"; answers with the address in force.
  virtual result<std::string> listen(std::string_view address) = 0;
  /// Lets nobody in any more; those who were let in go on.
  virtual void let_nobody_in() noexcept = 0;
  /// Lets nobody in any more, and hears nothing more of those who were let in. Answers how many there are whose requests may
  /// come with the next `progress`, and is to be asked again until there are none: then none will come.
  virtual std::size_t shut_out_newcomers() noexcept = 0;
  virtual void destroy_listener() noexcept = 0;
  virtual void reject(wire_connection_request request) noexcept = 0;
  /// Consumes the request, also when it fails: it is never rejected afterwards.
  virtual result<wire_endpoint> accept(wire_connection_request request, void* cookie) = 0;
  virtual result<wire_endpoint> connect(std::string_view address, void* cookie) = 0;
  /// An endpoint without error mode to another worker's address, over memory where both can. A peer's death is not
  /// reported on it, and it cannot be closed by force.
  virtual result<wire_endpoint> open_data(std::span<const std::byte> address, void* cookie) = 0;
  /// After this call the endpoint may not be used; `inline_done` or the callback means that it is gone.
  virtual posted close(wire_endpoint endpoint, bool force, wire_operation& operation) noexcept = 0;
  /// The bytes must live until the operation ended (F20).
  virtual posted send(wire_endpoint endpoint, std::uint16_t kind, std::span<const std::byte> bytes,
                      wire_operation& operation) noexcept = 0;

  // [P] keys and transfers
  virtual result<wire_key> unpack_key(wire_endpoint endpoint, const packed_key& key) = 0;
  virtual void destroy_key(wire_key key) noexcept = 0;
  virtual posted get(wire_endpoint endpoint, std::byte* destination, std::size_t bytes, std::uint64_t remote_address,
                     wire_key key, wire_region destination_region, wire_operation& operation) noexcept = 0;

  // [R] memory
  virtual result<mapped_memory> map(std::byte* address, std::size_t bytes) = 0;
  /// True: the library says that it is gone (an assumed verdict for UCX, F12).
  virtual bool unmap(wire_region region) noexcept = 0;
  /// Whether the library keeps two registrations behind these two handles.
  virtual bool distinct(wire_region one, wire_region other) const noexcept = 0;
  /// Last call: after the worker is destroyed and every region unmapped. May never return.
  virtual void close_context() noexcept = 0;

  /// Calls the library no more, except that a wire whose worker was never opened closes its context.
  virtual ~wire() = default;
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
