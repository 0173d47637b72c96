// One GET, as its owner hands it to the transport.
//
// Why this exists: the transport keeps the record from before submission until one of the four exits, and knows
// nothing of what it carries: holds, tickets and buffers live in the derived class and go when `ended` ran.
//
// Ownership   The submitter's until `submit_get` answered ok; the transport's until `ended`, in which the transfer
//             destroys itself.
// Units       Bytes.
// Threading   `wanted` and `ended` run on the progress thread with no lock held. `ended` may run inside a callback of
//             the library: it must not block, allocate, or call the transport's blocking functions.
// Failure     By value in `ended`.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/peer.hpp>
#include <holdfast/transport/operation.hpp>

#include <cstddef>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::transport {

enum class transfer_outcome : std::uint8_t {
  ok,             // every byte is there
  failed,         // ended with an error; the device will not touch the destination any more
  never_started,  // withdrawn or refused before submission; nothing was touched
  indeterminate,  // fate unknown; bytes may still be written until a fence
};

class connection_set;
struct connection;
struct cached_key;
struct data_endpoint;

class transfer : public operation {
 public:
  peer_id peer;
  std::uint64_t remote_address = 0;
  packed_key key;
  std::uint64_t generation = 0;
  std::uint64_t incarnation = 0;
  std::byte* destination = nullptr;
  std::size_t bytes = 0;
  /// Issued by this transport's `submit_map`; 0 = none.
  std::uint64_t destination_region = 0;

  /// Told once, on the submitter's thread, before the progress thread can see the transfer: it has its id now.
  virtual void accepted() noexcept {}
  /// Asked before submission, and again if it had to wait for its turn: false means that nobody waits, and the transfer is
  /// withdrawn untouched.
  virtual bool wanted() const noexcept { return true; }
  /// The waiter is to be told now that the fate is unknown: the peer is gone, and the lane never reports. Record and
  /// hold stay until `ended`. At most once, on the progress thread.
  virtual void orphaned() noexcept {}
  /// Exactly once. `why` is meaningful unless the outcome is ok.
  virtual void ended(transfer_outcome outcome, const error& why) noexcept = 0;

 protected:
  ~transfer() = default;
  /// In `ended`: whether it went through shared memory.
  bool went_through_memory() const noexcept { return data_ != nullptr; }

 private:
  friend class connection_set;
  void execute() noexcept final;
  void refuse() noexcept final;
  void exited(operation_exit exit, int status) noexcept final;

  connection_set* connections_ = nullptr;
  connection* connection_ = nullptr;
  data_endpoint* data_ = nullptr;  // posted on it; compared, once the set has let go of it
  transfer* previous_posted_ = nullptr;
  transfer* next_posted_ = nullptr;  // or next in the line of those that wait for their turn
  bool control_only_ = false;
  bool orphaned_ = false;
  cached_key* cached_key_ = nullptr;
  wire_region region_handle_ = nullptr;
  error why_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
