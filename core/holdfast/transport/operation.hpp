// Everything that was handed to the library and has not come back, and the four ways in which it comes back.
//
// Why this exists: a call can finish inline, call back later, be refused with an error, or never be heard of again
// because its worker was destroyed (spec/transport 4.6). Each record must take exactly one of these exits, whoever
// comes first: one state word for each record decides.
//
// Ownership   A record belongs to whoever made it until `admit` answered ok; then to the table until `exited` ran,
//             in which it may destroy itself.
// Units       Counts, bytes.
// Threading   `admit` and the counts from any thread; everything else on the progress thread. `exited` runs on the
//             progress thread with no lock held, possibly inside a callback of the library: it records, and calls
//             nothing of the wire.
// Failure     `admit` answers `busy` (table full) or `shutting_down`; the record is the caller's again.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/fate_listener.hpp>
#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/base/peer.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/telemetry/event_log.hpp>
#include <holdfast/transport/submission_queue.hpp>
#include <holdfast/transport/wire.hpp>

#include <cstddef>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::transport {

/// In the order of the event `operation_accepted`.
enum class operation_kind : std::uint8_t { get, hello, close };

/// In the order of the event `operation_ended`.
enum class operation_exit : std::uint8_t {
  inline_done,  // exit 1
  callback,     // exit 2
  error,        // exit 3
  swept,        // exit 4: fate unknown
  refused,      // by us, before submission: nothing was touched
  withdrawn,    // by its owner or by the closing transport, before submission: nothing was touched
};

class operation_table;

/// One record. `id` names it in events, unique in a transport.
class operation : public wire_operation, public command {
 public:
  std::uint64_t id() const noexcept { return id_; }
  void called_back(int status) noexcept final;

 protected:
  operation() noexcept = default;
  ~operation() = default;
  /// Exactly once, after the record left the table. `status` is the library's, 0 where it has none.
  virtual void exited(operation_exit exit, int status) noexcept = 0;
  /// Whom to tell if the transport hangs while it has this record; may be null. Called under the table's lock, so that
  /// the record cannot go meanwhile: answers a share and does nothing else.
  virtual intrusive_ptr<fate_listener> listener() const noexcept { return {}; }

 private:
  friend class operation_table;
  enum class phase : std::uint8_t { queued, posting, called, posted, ended };

  platform::atomic<phase> phase_{phase::queued};
  operation_kind kind_ = operation_kind::get;
  bool orphan_ = false;  // guarded by the table's lock
  int early_status_ = 0;
  operation_table* table_ = nullptr;
  std::uint64_t id_ = 0;
  operation* previous_ = nullptr;
  operation* next_ = nullptr;
};

struct operation_counts {
  std::uint64_t queued = 0;
  std::uint64_t posted = 0;
  std::uint64_t ended = 0;
  std::uint64_t swept = 0;
  std::uint64_t orphaned = 0;  // among the posted
};

class operation_table {
 public:
  /// `capacity`: transfers at once. Hellos and closes are bounded by the connections and always find room.
  operation_table(event_log& log, std::size_t capacity) noexcept : log_(log), capacity_(capacity) {}

  /// Enters the record; from here on it takes an exit. Gives it its id.
  result<void> admit(operation& record, operation_kind kind, const peer_id& peer, std::size_t bytes) noexcept;
  /// No transfer is admitted from here on.
  void close() noexcept;

  /// The library is about to be called for it.
  void begin_post(operation& record, std::uint64_t connection) noexcept;
  /// What the library answered, before anything else looks at the record. It may be gone afterwards.
  void settle_post(operation& record, const posted& answer) noexcept;
  /// Ends a record that was not handed to the library: `refused` or `withdrawn`.
  void drop(operation& record, operation_exit why) noexcept;
  /// The waiter of a posted record is about to be told that its fate is unknown; the record stays.
  void orphan(operation& record, std::uint64_t connection, std::size_t bytes) noexcept;
  /// Takes a record back that was admitted and could not be pushed: it is the caller's again and is told nothing.
  void retract(operation& record) noexcept;
  /// Ends everything that was handed to the library and is left, in the order of admission. What is being submitted stays:
  /// its submitter finds the queue closed and takes it back. Only after the worker's destruction returned.
  std::uint64_t sweep() noexcept;
  /// The transport hangs: tells whoever waits for a record that is left that its fate is unknown. The records stay.
  void tell_unknown() noexcept;

  /// Whether a transfer took that exit.
  bool saw(operation_exit exit) const noexcept;
  std::uint64_t outstanding() const noexcept;
  operation_counts counts() const noexcept;

 private:
  friend class operation;
  void leave(operation& record, operation_exit exit, int status) noexcept;
  void unlink(operation& record) noexcept HOLDFAST_REQUIRES(mutex_);

  event_log& log_;
  const std::size_t capacity_;
  mutable platform::mutex mutex_{lock_ranks::transport_operation_table};
  operation* first_ HOLDFAST_GUARDED_BY(mutex_) = nullptr;
  operation* last_ HOLDFAST_GUARDED_BY(mutex_) = nullptr;
  std::size_t transfers_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint64_t records_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint64_t posted_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint64_t ended_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint64_t orphaned_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint64_t swept_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_id_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  unsigned exits_seen_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  bool closed_ HOLDFAST_GUARDED_BY(mutex_) = false;
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
