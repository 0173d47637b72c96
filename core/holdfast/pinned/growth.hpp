// How a pool gets another arena, and how those who wait for it are served.
//
// Why this exists: registering takes long, and two callers who miss at once must not register two arenas. So a pool
// has one grower; who misses waits in line and is cut a span in the section that publishes the new arena. A caller who
// gives up only leaves the line: the registration goes on, and its arena is adopted (spec/pinned-memory 7.1, 7.4).
//
// Ownership   The record of a map (`builder`) owns block, reservation and ticket until the backend answers; it is
//             nobody's frame, so no cancellation can take them away under a queued command. Growth belongs to the pool.
// Units       Bytes, granules.
// Threading   Any thread. Growth's lock is taken inside the vector's, and the arenas' inside it.
// Failure     By value, to the caller whose request asked for the arena.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/capacity_ledger.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/gate.hpp>
#include <holdfast/base/intrusive_list.hpp>
#include <holdfast/base/intrusive_ptr.hpp>
#include <holdfast/base/task.hpp>
#include <holdfast/base/thread_annotations.hpp>
#include <holdfast/base/waiter.hpp>
#include <holdfast/base/work_item.hpp>
#include <holdfast/pinned/arena.hpp>
#include <holdfast/pinned/backend.hpp>
#include <holdfast/pinned/buffer.hpp>
#include <holdfast/platform/mutex.hpp>

#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>

namespace holdfast::inline HOLDFAST_ABI::pinned {

class builder;
class pool_core;

/// Waiting for a span. Part of the frame of the allocation.
class span_waiter final : public waiter {
 public:
  using line = intrusive_list<span_waiter, wait_source>;

  span_waiter(pool_core& pool, std::uint32_t granules, std::uint64_t length, builder* dedicated) noexcept
      : waiter(platform::never), granules_(granules), length_(length), pool_(pool), dedicated_(dedicated) {}
  ~span_waiter();
  /// False: no memory for the object that the span needs; do not wait then.
  bool bring_object() noexcept;
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> task) noexcept {
    return suspend(task.promise());
  }
  /// The buffer, or the error of the growth, or cancelled.
  result<buffer> await_resume() noexcept;

 private:
  friend class growth;
  attached attach() noexcept override;
  bool detach() noexcept override;

  const std::uint32_t granules_;
  const std::uint64_t length_;
  pool_core& pool_;
  builder* dedicated_;  // its own arena's record, not submitted yet; null in the pooled line
  // Guarded by growth's lock while linked, the task's own afterwards.
  line* line_ = nullptr;
  std::uint64_t place_ = 0;
  span* carried_ = nullptr;  // an object that brings the node for a cut, made before anything is locked
  span* granted_ = nullptr;
  error why_;
};

class growth final : public work_item {
 public:
  explicit growth(pool_core& pool) noexcept;

  /// A record for an arena of its own for `length` bytes. Nothing was submitted yet. Errors: as for an allocation.
  result<builder*> prepare_dedicated(std::uint64_t length) noexcept;
  /// The pool was closed, in this section of the vector's lock: everybody who waits goes to `told`.
  void close(told_waiters& told) noexcept;
  /// Maps that were not answered yet.
  std::uint64_t outstanding() noexcept;
  std::uint64_t waiting() noexcept;

 private:
  friend class builder;
  friend class span_waiter;

  void run() noexcept override;
  void drop() noexcept override;
  void step() noexcept;
  void go_on() noexcept;

  /// False: the pool is closed, nothing was linked.
  bool join(span_waiter& one) noexcept;
  bool leave(span_waiter& one) noexcept;
  void serve_existing(told_waiters& told) noexcept HOLDFAST_REQUIRES(mutex_);
  std::uint32_t serve_new(arena& built, told_waiters& told) noexcept HOLDFAST_REQUIRES(mutex_);
  void tell_all(span_waiter::line& line, const error& why, told_waiters& told) noexcept HOLDFAST_REQUIRES(mutex_);
  void fail_first(std::uint64_t place, const error& why, told_waiters& told) noexcept HOLDFAST_REQUIRES(mutex_);

  result<builder*> prepare(std::uint64_t arena_bytes, bool dedicated, const char* operation) noexcept;
  void begin(builder& record) noexcept HOLDFAST_REQUIRES(mutex_);
  void answered(builder& record, const result<mapped_range>& answer) noexcept;
  void built_pooled(builder& record) noexcept;
  void built_dedicated(builder& record) noexcept;
  void unusable(builder& record) noexcept;
  void failed(builder& record, const error& why) noexcept;

  pool_core& pool_;
  platform::mutex mutex_;
  // The growth claim: somebody searches, builds, or waits for an answer on behalf of the line.
  bool claimed_ HOLDFAST_GUARDED_BY(mutex_) = false;
  std::uint64_t last_place_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  span_waiter::line line_ HOLDFAST_GUARDED_BY(mutex_);
  intrusive_list<builder> builders_ HOLDFAST_GUARDED_BY(mutex_);
};

/// The record of one map: everything that must not go before the answer. The backend's until it answers.
class builder final : public map_request, public list_hook<> {
 public:
  builder(pool_core& pool, bool is_dedicated) noexcept;
  ~builder();

  // Destroyed bottom-up: the arena's block before the reservation that counted it, both before the ticket that lets
  // a drain end, and all of it before the pool.
  const intrusive_ptr<pool_core> pool;
  gate::ticket ticket;
  reservation claim;
  arena* built = nullptr;  // owned until it is published, retired or failed
  const bool dedicated;
  std::uint64_t asked_for = 0;  // place of the waiter whose request this answers; pooled
  std::uint64_t request = 0;    // and how many bytes it wants
  span_waiter::line waiting;    // the one that wants a dedicated arena; guarded by growth's lock

 private:
  void mapped(const result<mapped_range>& answer) noexcept override;
};

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
