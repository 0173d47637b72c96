// Fetching from a peer into a buffer.
//
// Why this exists: the device writes long after a caller lost patience. So the operation, not the caller, owns buffer,
// hold and ticket, and the backend owns the operation until it ended in one of four ways. Cancelling gives up the
// notification and nothing else (spec/pinned-memory 7.10).
//
// Ownership   `get_operation` is the caller's until the backend accepted it, the backend's until `ended`. Between the
//             two sides stands a `get_cell`, owned by both.
// Units       Bytes.
// Threading   `orphaned` and `ended` run on a thread of the backend, which must not be kept: what frees memory is
//             posted to the executor.
// Failure     By value; see `get_answer`.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/event_cell.hpp>
#include <holdfast/base/fate_listener.hpp>
#include <holdfast/base/gate.hpp>
#include <holdfast/base/intrusive_ptr.hpp>
#include <holdfast/base/task.hpp>
#include <holdfast/base/work_item.hpp>
#include <holdfast/pinned/backend.hpp>
#include <holdfast/pinned/buffer.hpp>
#include <holdfast/pinned/span.hpp>
#include <holdfast/platform/atomic.hpp>

#include <cstdint>
#include <memory>

namespace holdfast::inline HOLDFAST_ABI::pinned {

class pool_core;

/// The fetch ended, or never began, and here is the buffer again. `outcome` says whether every byte is there; after
/// transfer_failed the bytes are unspecified, after any other error they are as before.
struct get_answer {
  result<void> outcome;
  buffer destination;
};

/// Where the operation and its waiter meet.
class get_cell final : public fate_listener {
 public:
  explicit get_cell(intrusive_ptr<pool_core> of) noexcept;
  void fate_unknown() noexcept override;

  const intrusive_ptr<pool_core> pool;
  event_cell<result<get_answer>> ended;
  std::uint64_t operation = 0;  // for events; written before `ended` is completed
  platform::atomic<bool> abandoned{false};
  platform::atomic<bool> told{false};  // the operation's end and `fate_unknown` meet here: the first is believed

 private:
  ~get_cell() override;
};

class get_operation final : public get_request, public work_item {
 public:
  /// Null if host memory is out (site "pinned.get"); `destination` is untouched then. Nothing was counted yet.
  static std::unique_ptr<get_operation> make(pool_core& pool, buffer& destination) noexcept;
  ~get_operation();

  /// Checks and admits: afterwards ticket and hold are taken and the request is complete.
  /// Errors: not_configured, shutting_down, out_of_range, stale_key; nothing is held then.
  result<void> arm(const peer_id& from, const remote_reference& source_range) noexcept;
  /// The fetch was not accepted: gives everything back.
  buffer disarm() noexcept;

  std::uint64_t span_id() const noexcept;
  const intrusive_ptr<get_cell>& cell() const noexcept { return cell_; }

 private:
  explicit get_operation(pool_core& pool) noexcept;
  void tell(get_outcome outcome, const error& why) noexcept;
  // get_request
  void accepted() noexcept override;
  bool abandoned() const noexcept override;
  void orphaned() noexcept override;
  intrusive_ptr<fate_listener> listener() const noexcept override { return cell_; }
  void ended(get_outcome outcome, const error& why) noexcept override;
  // work_item: destroys the operation, and with it perhaps the buffer, on the executor
  void run() noexcept override;
  void drop() noexcept override;

  // Destroyed bottom-up: hold and buffer before the ticket, all before the pool.
  const intrusive_ptr<pool_core> pool_;
  gate::ticket ticket_;
  buffer destination_;
  transfer_hold hold_;
  intrusive_ptr<get_cell> cell_;
  bool told_ = false;  // the waiter was told that the fate is unknown
};

/// Waits for the operation of `cell` to end, or for the cancellation.
task<result<get_answer>> await_get(task_context context, intrusive_ptr<get_cell> cell, std::uint64_t span_id);

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
