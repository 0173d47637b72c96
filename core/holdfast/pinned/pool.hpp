// Pinned memory: registered buffers that a NIC can write, from a budget, and their orderly end.
//
// Why this exists: a NIC goes on writing after the program stopped waiting, and a registration costs too much to be
// made for each buffer. `memory` hands out buffers cut from large registered arenas, fetches into them from peers, and
// at the end gives every registration back or says where it is (spec/pinned-memory).
//
// Ownership   `memory` is move-only and owned by the runtime. Buffers may outlive it; host, task environment, event log
//             and ledger must outlive the last buffer (see `create`), the backend must outlive `memory`. Destroyed
//             without a shutdown it calls no device: what is registered leaks, with an event for each block.
// Units       Bytes, absolute deadlines.
// Threading   Every member from any thread. Handlers run on their associated executor, else on the environment's.
//             Cancelling a pending call gives up the notification: what was started goes on.
// Failure     By value; each function names its errors.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/capacity_ledger.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/intrusive_ptr.hpp>
#include <holdfast/base/peer.hpp>
#include <holdfast/base/task.hpp>
#include <holdfast/base/witness.hpp>
#include <holdfast/pinned/backend.hpp>
#include <holdfast/pinned/buffer.hpp>
#include <holdfast/pinned/get.hpp>
#include <holdfast/pinned/reclaim.hpp>
#include <holdfast/pinned/settings.hpp>
#include <holdfast/pinned/shutdown.hpp>
#include <holdfast/pinned/snapshot.hpp>
#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/pages.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::pinned {

struct alloc_options {
  /// An arena for this buffer alone, whatever its size: no other tenant is reachable with its key.
  bool own_arena = false;
};

/// What a witness settled.
struct released_report {
  std::uint64_t arenas = 0;
  std::uint64_t bytes = 0;
  std::uint64_t spans_quarantined = 0;  // left: their fate stays unknown, their blocks leak
};

class memory {
 public:
  /// `id` names the pool in events. Nothing is registered yet. `options.registered_bytes_budget` is the embedder's
  /// business: the ledger has the ceiling. `surroundings`, if given, is where environment, log and ledger live; it is
  /// kept until the last buffer is gone. Errors: out_of_range (a setting, by name), out_of_memory.
  static result<memory> create(std::uint64_t id, platform::pages& pages, const task_environment& environment,
                               capacity_ledger& ledger, backend& device, const settings& options,
                               std::shared_ptr<void> surroundings = {}) noexcept;
  memory(memory&& other) noexcept;
  memory& operator=(memory&&) = delete;
  ~memory();

  /// A buffer of `bytes` from what is registered already; never registers, never waits. Errors: out_of_range (zero, or
  /// `dedicated_arena_min` and more), shutting_down, busy (nothing has room), out_of_memory.
  result<buffer> try_alloc(std::uint64_t bytes) noexcept;

  /// A buffer of `bytes`, registering an arena if nothing has room: void(result<buffer>). Before the budget refuses, what
  /// nobody uses is given back, for at most `unmap_timeout_ns` (setting `reclaim_on_pressure`). Errors: out_of_range,
  /// budget_exceeded (numbers: requested, registered, ceiling), limit_exceeded, out_of_memory, corrupt, shutting_down, cancelled (an arena that is being
  /// registered for it will serve others, or is given back), and the backend's own.
  template <class Token>
  auto async_alloc(std::uint64_t bytes, alloc_options how, Token&& token) {
    return boost::asio::async_initiate<Token, void(result<buffer>)>(
        [](auto handler, memory* self, std::uint64_t wanted, alloc_options options) {
          self->start_alloc(wanted, options, alloc_handler(std::move(handler)));
        },
        token, this, bytes, how);
  }
  template <class Token>
  auto async_alloc(std::uint64_t bytes, Token&& token) {
    return async_alloc(bytes, alloc_options{}, std::forward<Token>(token));
  }

  /// Fetches `source.length` bytes from `peer` to the beginning of `destination`: void(result<get_answer>).
  /// A value means that the buffer is back, whatever the outcome: ok; transfer_failed, unreachable, bad_key, peer_lost
  /// and the transport's own; or, refused before anything was touched, not_configured, shutting_down, out_of_range,
  /// stale_key, out_of_memory. An error means that it is not back: cancelled (it is freed when the device is done),
  /// indeterminate (its memory is not used again), shutting_down (the executor was stopped).
  template <class Token>
  auto async_get(const peer_id& peer, const remote_reference& source, buffer destination, Token&& token) {
    return boost::asio::async_initiate<Token, void(result<get_answer>)>(
        [](auto handler, memory* self, peer_id from, remote_reference range, buffer into) {
          self->start_get(from, range, std::move(into), get_handler(std::move(handler)));
        },
        token, this, peer, source, std::move(destination));
  }

  /// Refuses new work at once, then gives every registration back, until `deadline`: void(result<shutdown_report>).
  /// Later callers get the same report. Cancelling gives up the notification; errors: cancelled, out_of_memory.
  template <class Token>
  auto async_shutdown(platform::time_point deadline, Token&& token) {
    return boost::asio::async_initiate<Token, void(result<shutdown_report>)>(
        [](auto handler, memory* self, platform::time_point until) {
          self->start_shutdown(until, shutdown_handler(std::move(handler)));
        },
        token, this, deadline);
  }

  /// Settles everything whose unmap was not confirmed: the worker it was registered with is gone, and `gone` says so.
  /// Errors: invalid_state (no shutdown ended yet), invalid_argument (a witness of another incarnation, or spent).
  result<released_report> release_unconfirmed(witness gone) noexcept;

  /// Takes the empty arenas out of service that age and warm floor let go, without waiting for the next timed sweep; their
  /// unmaps are submitted. Nothing happens once a shutdown closed the pool.
  reclaim_report reclaim_idle() noexcept;

  std::uint64_t registered_bytes() const noexcept;
  std::uint64_t budget_bytes() const noexcept;
  /// Sums over the arenas in service; exact for each, not one instant over all.
  std::uint64_t arena_count() const;
  std::uint64_t live_spans() const;
  std::uint64_t in_flight_transfers() const;
  memory_snapshot snapshot() const;
  /// The same for a task that shuts down more than this.
  static task<result<shutdown_report>> shutdown(task_context context, memory* self, platform::time_point deadline);
  /// The same where nothing can be waited for (the executor was stopped): what is not answered at once is left. If a
  /// shutdown runs already, the report is what is known so far.
  shutdown_report shut_down_without_waiting() noexcept;

 private:
  using alloc_handler = boost::asio::any_completion_handler<void(result<buffer>)>;
  using get_handler = boost::asio::any_completion_handler<void(result<get_answer>)>;
  using shutdown_handler = boost::asio::any_completion_handler<void(result<shutdown_report>)>;

  explicit memory(intrusive_ptr<pool_core> core) noexcept;
  void start_alloc(std::uint64_t bytes, alloc_options how, alloc_handler handler);
  void start_get(const peer_id& peer, const remote_reference& source, buffer destination, get_handler handler);
  void start_shutdown(platform::time_point deadline, shutdown_handler handler);

  intrusive_ptr<pool_core> core_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
