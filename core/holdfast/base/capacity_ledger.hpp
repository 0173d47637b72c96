// Bytes against a ceiling.
//
// Why this exists: what a process may register is bounded, registering takes time, and it may fail or be cancelled
// half way. So bytes are reserved before, raised to what the device really took, and become a charge that is given
// back once, when the device confirmed that it let go (spec/pinned-memory 4.2).
//
//   reserve(n) -> reservation --raise_to(m)--> reservation --commit--> grant --release--> gone
//                      \--- dropped: gives back
//
// Ownership   The ledger outlives its reservations and grants. A reservation that is dropped gives back. A grant that
//             is dropped does not: its charge stays for ever, since nobody confirmed that the memory is gone.
// Units       Bytes. Epochs count events that made capacity available.
// Threading   Every member from any thread; one mutex, whose place in the order the owner names.
// Waiting     Observe `epoch()`, then reserve; if that is refused, wait for a later epoch: a release between the two
//             has moved it already. An epoch moves when a grant is released, and when a reservation is given back
//             while another was refused meanwhile; a failed attempt of one's own moves nothing (a waiter that woke,
//             failed and gave back would wake itself for ever).
// Failure     By value. Releasing more than is charged means that the books do not add up: clamp, count, error event,
//             and no new reservation from then on (error_code::corrupt); releases only count down what is recorded.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/intrusive_list.hpp>
#include <holdfast/base/lock_class.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/base/thread_annotations.hpp>
#include <holdfast/base/waiter.hpp>
#include <holdfast/platform/condition_variable.hpp>
#include <holdfast/platform/mutex.hpp>

#include <cstdint>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

class event_log;
class capacity_ledger;

/// Bytes charged for something that exists. Move-only; `release` gives them back.
class [[nodiscard]] grant {
 public:
  grant() noexcept = default;
  grant(grant&& other) noexcept
      : ledger_(std::exchange(other.ledger_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  /// What the target held is kept charged, as if it was dropped.
  grant& operator=(grant&& other) noexcept {
    ledger_ = std::exchange(other.ledger_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  std::uint64_t bytes() const noexcept { return bytes_; }
  explicit operator bool() const noexcept { return ledger_ != nullptr; }
  /// Gives the bytes back. Once: afterwards the grant is empty, and releasing an empty one does nothing.
  void release() noexcept;
  /// Cuts `bytes` off into a grant of their own. Empty, and nothing changed, if there are fewer.
  grant split(std::uint64_t bytes) noexcept;
  /// The charge as a plain number, for an owner that calls `capacity_ledger::release` itself.
  [[nodiscard]] std::uint64_t detach() noexcept {
    ledger_ = nullptr;
    return std::exchange(bytes_, 0);
  }

 private:
  friend class reservation;
  grant(capacity_ledger& ledger, std::uint64_t bytes) noexcept : ledger_(&ledger), bytes_(bytes) {}
  capacity_ledger* ledger_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// Bytes set aside for something that does not exist yet.
class [[nodiscard]] reservation {
 public:
  reservation() noexcept = default;
  reservation(reservation&& other) noexcept
      : ledger_(std::exchange(other.ledger_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        refusals_seen_(other.refusals_seen_),
        parent_refusals_seen_(other.parent_refusals_seen_) {}
  reservation& operator=(reservation&& other) noexcept {
    if (this != &other) {
      drop();
      ledger_ = std::exchange(other.ledger_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
      refusals_seen_ = other.refusals_seen_;
      parent_refusals_seen_ = other.parent_refusals_seen_;
    }
    return *this;
  }
  ~reservation() { drop(); }

  std::uint64_t bytes() const noexcept { return bytes_; }
  explicit operator bool() const noexcept { return ledger_ != nullptr; }
  /// The device took `bytes`: charges the difference even above the ceiling, since the memory is registered already.
  /// True: within the ceiling. False: above it; or `bytes` is smaller than what is reserved, a broken precondition
  /// that changes nothing and is reported; or the sum leaves 64 bits, which changes nothing and marks the ledger corrupt.
  bool raise_to(std::uint64_t bytes) noexcept;
  /// The bytes become the owner's charge; the reservation is spent.
  grant commit() noexcept;
  /// Gives back now. Idempotent.
  void drop() noexcept;

 private:
  friend class capacity_ledger;
  reservation(capacity_ledger& ledger, std::uint64_t bytes, std::uint64_t refusals_seen,
              std::uint64_t parent_refusals_seen) noexcept
      : ledger_(&ledger), bytes_(bytes), refusals_seen_(refusals_seen), parent_refusals_seen_(parent_refusals_seen) {}
  capacity_ledger* ledger_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint64_t refusals_seen_ = 0;
  std::uint64_t parent_refusals_seen_ = 0;
};

struct capacity_snapshot {
  std::uint64_t ceiling_bytes;
  std::uint64_t charged_bytes;       // reservations and grants
  std::uint64_t reserved_bytes;      // of these, reservations
  std::uint64_t charged_bytes_high;  // highest ever
  std::uint64_t refusals;
  std::uint64_t over_releases;
  std::uint64_t epoch;
  bool corrupt;
};

class capacity_ledger {
 public:
  /// `id` names the ledger in events and errors. `rank` is the class of its mutex. A parent's ceiling, if there is
  /// one, binds as well; the two mutexes are never held together. The parent outlives this and has no parent.
  capacity_ledger(std::uint64_t id, std::uint64_t ceiling_bytes, event_log& log,
                  const lock_class& rank = lock_ranks::base_ledger, capacity_ledger* parent = nullptr) noexcept;
  /// Waiters that are left stop the process.
  ~capacity_ledger();
  capacity_ledger(const capacity_ledger&) = delete;
  capacity_ledger& operator=(const capacity_ledger&) = delete;

  /// Sets `bytes` aside, more than 0.
  /// budget_exceeded (numbers: requested, charged, ceiling; identity: the ledger that refused, this or a parent),
  /// out_of_range (0 bytes), corrupt. Nothing is charged after an error.
  result<reservation> reserve(std::uint64_t bytes) noexcept;
  /// Gives back a charge that its owner kept as a number (`grant::detach`). Exactly once for each charge.
  void release(std::uint64_t bytes) noexcept;

  std::uint64_t id() const noexcept { return id_; }
  std::uint64_t ceiling_bytes() const noexcept { return ceiling_bytes_; }
  capacity_snapshot snapshot() const noexcept;
  /// To be observed before the attempt whose refusal is waited out.
  std::uint64_t epoch() const noexcept;

  class epoch_awaiter final : public waiter {
   public:
    epoch_awaiter(capacity_ledger& ledger, std::uint64_t seen, platform::time_point deadline) noexcept
        : waiter(deadline), ledger_(ledger), seen_(seen) {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> task) noexcept {
      return suspend(task.promise());
    }
    wait_end await_resume() const noexcept { return end(); }

   private:
    attached attach() noexcept override;
    bool detach() noexcept override;
    capacity_ledger& ledger_;
    std::uint64_t seen_;
  };
  /// Waits until the epoch is greater than `seen`.
  epoch_awaiter wait_past(std::uint64_t seen, platform::time_point deadline) noexcept {
    return epoch_awaiter(*this, seen, deadline);
  }
  /// The same for a platform thread, which it blocks. False: the deadline passed.
  bool wait_past_blocking(std::uint64_t seen, platform::time_point deadline) noexcept;

 private:
  friend class grant;
  friend class reservation;
  enum class source : std::uint8_t { reservation, grant };

  // Each changes this ledger only; the callers walk to the parent.
  result<std::uint64_t> open(std::uint64_t bytes) noexcept;  // answers the refusals seen
  enum class raised : std::uint8_t { within, above, unchanged };
  raised raise(std::uint64_t from, std::uint64_t to) noexcept;
  void commit(std::uint64_t bytes) noexcept;
  void give_back(std::uint64_t bytes, source from, std::uint64_t refusals_seen) noexcept;
  void move_epoch(told_waiters& told) noexcept HOLDFAST_REQUIRES(mutex_);
  std::uint64_t charged() const noexcept HOLDFAST_REQUIRES(mutex_) { return reserved_ + granted_; }

  const std::uint64_t id_;
  const std::uint64_t ceiling_bytes_;
  event_log& log_;
  capacity_ledger* const parent_;
  mutable platform::mutex mutex_;
  std::uint64_t reserved_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint64_t granted_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint64_t charged_high_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint64_t refusals_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint64_t over_releases_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint64_t epoch_ HOLDFAST_GUARDED_BY(mutex_) = 1;
  bool corrupt_ HOLDFAST_GUARDED_BY(mutex_) = false;
  intrusive_list<waiter, wait_source> waiting_ HOLDFAST_GUARDED_BY(mutex_);
  platform::condition_variable moved_;
};

}  // namespace holdfast::inline HOLDFAST_ABI
