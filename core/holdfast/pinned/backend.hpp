// What pinned memory needs of a device driver: register, deregister, fetch.
//
// Why this exists: the contract stands with its user (spec/pinned-memory 6). Transports implement it through an
// adapter in runtime/, the scripted backend of the simulator implements it with every answer it allows.
//
// Ownership   Requests are owned by pinned memory until submitted, by the backend until it answers. A request that
//             is never answered stays with the backend for ever; nobody else touches it.
// Units       Bytes.
// Threading   `submit_*` from any thread, never under a ranked lock. Answers come on any thread of the backend, with
//             no lock held, never inside `submit_*`... except `submit_get`, whose `ended` may run inline (exit 1).
// Failure     By value in the answers.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/fate_listener.hpp>
#include <holdfast/base/peer.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::pinned {

/// One answered registration. `region` was issued by the backend, is never reused in a runtime, and is not 0.
struct mapped_range {
  std::uint64_t region = 0;
  std::byte* effective_address = nullptr;
  std::size_t effective_bytes = 0;
  packed_key key;
};

enum class unmap_verdict : std::uint8_t {
  confirmed,  // the registration is gone
  refused,    // nothing changed; may be submitted again, bounded
  unknown,    // everything else, silence included: pages and charge stay
};

struct capabilities {
  const char* kind = "none";
  bool get_works = false;
  bool get_uses_memh = false;
  bool destroy_is_fence = false;
  bool unmap_verdict_reported = false;  // false: the verdict is assumed (spec/pinned-memory 6.2.6)
  bool can_refuse_unmap = false;
  bool keeps_tombstones = false;  // emulated lanes: address ranges outlive blocks (spec/transport 7.20)
  std::uint32_t devices = 1;      // registrations charged for one range
  std::size_t max_region_bytes = SIZE_MAX;
};

/// Asks for one registration. The object lives until `mapped` ran.
class map_request {
 public:
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  std::uint64_t block = 0;
  /// Exactly once. An error means: no registration exists and none will appear.
  virtual void mapped(const result<mapped_range>& answer) noexcept = 0;
  map_request* next_map = nullptr;  // link for the backend's queue

 protected:
  ~map_request() = default;
};

/// Asks for one deregistration. The object lives until `unmapped` ran; that may be never.
class unmap_request {
 public:
  std::uint64_t region = 0;
  /// At most once.
  virtual void unmapped(unmap_verdict verdict) noexcept = 0;
  unmap_request* next_unmap = nullptr;  // link for the backend's queue

 protected:
  ~unmap_request() = default;
};

enum class get_outcome : std::uint8_t {
  ok,             // every byte is there
  failed,         // ended with an error; the device will not touch the destination any more
  never_started,  // withdrawn or refused before submission; nothing was touched
  indeterminate,  // fate unknown; bytes may still be written
};

/// One fetch. Carries hold, ticket and buffer in the derived class, which the backend keeps until `ended` ran.
class get_request {
 public:
  peer_id peer;
  remote_reference source;
  std::byte* destination = nullptr;
  std::size_t bytes = 0;
  std::uint64_t destination_region = 0;
  std::uint64_t operation = 0;  // identity in events; issued by the backend before submission

  /// `operation` is set, and nothing was submitted yet: the moment for events that name it. Once, on the thread that
  /// submits.
  virtual void accepted() noexcept = 0;
  /// Asked once, before submission: true means that nobody waits any more, and the backend may end the request as
  /// `never_started` instead.
  virtual bool abandoned() const noexcept { return false; }
  /// The waiter is to be told now although the operation has not ended (peer dead on a lane that never reports).
  /// At most once, never after `ended`.
  virtual void orphaned() noexcept = 0;
  /// Whom to tell if the backend is given up for hung while it has this request. May be null: nobody waits.
  virtual intrusive_ptr<fate_listener> listener() const noexcept { return {}; }
  /// Exactly once, by whichever of the four exits comes (spec/pinned-memory 6.3.3). This is the fence unless the
  /// outcome is `indeterminate`. The request destroys itself. `why` is meaningful unless the outcome is ok.
  virtual void ended(get_outcome outcome, const error& why) noexcept = 0;

 protected:
  ~get_request() = default;
};

class backend {
 public:
  virtual const capabilities& declared() const noexcept = 0;
  /// Incarnation of the runtime, as it stands in references.
  virtual std::uint64_t incarnation() const noexcept = 0;
  /// Which life of the transport within the incarnation: what its witness will name.
  virtual std::uint64_t transport_epoch() const noexcept { return 1; }
  virtual void submit_map(map_request& request) noexcept = 0;
  virtual void submit_unmap(unmap_request& request) noexcept = 0;
  /// An error means: refused synchronously, nothing was touched, the request is the caller's again.
  virtual result<void> submit_get(get_request& request) noexcept = 0;

 protected:
  ~backend() = default;
};

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
