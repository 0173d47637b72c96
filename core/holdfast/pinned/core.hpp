// What the parts of one pool share: its books, its arenas, its gates, and the device it registers with.
//
// Why this exists: buffers, transfers and unmaps outlive the facade. What they still need lives here, and goes with the
// last of them.
//
// Ownership   Counted: the facade, every operation, every map that was not answered, every arena with something going
//             on. What is referred to (host, environment, log, ledger, backend) is the embedder's; the backend is used
//             only until its teardown; the others must outlive the last buffer.
// Units       Bytes.
// Threading   See the members. The lock `vector` orders publication, retirement and the closing of the pool; walkers
//             of the chain take no lock but the arenas' own.
// Failure     By value.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/capacity_ledger.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/gate.hpp>
#include <holdfast/base/generation.hpp>
#include <holdfast/base/intrusive_list.hpp>
#include <holdfast/base/intrusive_ptr.hpp>
#include <holdfast/base/quarantine.hpp>
#include <holdfast/base/task.hpp>
#include <holdfast/base/thread_annotations.hpp>
#include <holdfast/pinned/arena.hpp>
#include <holdfast/pinned/backend.hpp>
#include <holdfast/pinned/growth.hpp>
#include <holdfast/pinned/reclaim.hpp>
#include <holdfast/pinned/retiring_list.hpp>
#include <holdfast/pinned/settings.hpp>
#include <holdfast/pinned/shutdown.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/mutex.hpp>
#include <holdfast/platform/pages.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace holdfast::inline HOLDFAST_ABI::pinned {

class pool_core final : public ref_counted<pool_core> {
 public:
  /// Null if host memory is out (site "pinned.core").
  static intrusive_ptr<pool_core> make(std::uint64_t id, platform::pages& pages, const task_environment& environment,
                                       capacity_ledger& ledger, backend& device, const settings& options,
                                       std::shared_ptr<void> surroundings) noexcept;

  /// A span from an arena that is in service, or null: `why` is then busy (none has room) or out_of_memory (for the span
  /// object). Not a result<>: an error is large, and this is the hot path.
  span* try_existing(std::uint32_t granules, std::uint64_t length, error_code& why) noexcept;
  /// The same with an object that the caller brings (or null), which is null afterwards if it was used; null if there
  /// is no room, or no object.
  span* cut_existing(std::uint32_t granules, std::uint64_t length, span*& carried) noexcept;

  /// In service: the chain's new end, or one of the dedicated.
  void publish(arena& built, bool adopted) noexcept HOLDFAST_REQUIRES(vector);
  /// Out of service, and on the retiring list, in one section.
  void retire(arena& leaving, retire_reason reason) noexcept HOLDFAST_REQUIRES(vector);
  /// Gives a retired arena's registration back: by an unmap, or at once if a witness was shown already.
  void dispose(arena& retired) noexcept;
  /// Takes out of service whatever nobody uses and `mode` lets go, newest first; the victims are on the retiring list,
  /// chained by `next_reclaimed` with a share each. `waits`: something empty is too young. None if the pool is closed.
  struct idle_sweep {
    arena* first = nullptr;
    std::uint32_t victims = 0;
    std::uint64_t bytes = 0;
    bool waits = false;
  };
  idle_sweep retire_idle(reclaim_mode mode) noexcept;
  /// Takes everything out of service; for the sweep.
  void retire_all(retire_reason reason) noexcept HOLDFAST_REQUIRES(vector);
  /// The facade goes without a shutdown: no device call; what is registered leaks.
  void abandon() noexcept;

  // Destroyed last (C++ destroys bottom-up): what log, ledger and environment live in, if the embedder gave it.
  const std::shared_ptr<void> surroundings;
  const std::uint64_t id;
  platform::pages& pages;
  const task_environment& environment;
  event_log& log;
  capacity_ledger& ledger;
  backend& device;
  const settings options;
  const std::size_t page_bytes;
  const capabilities declared;
  const std::uint64_t incarnation;
  const std::uint64_t epoch;
  generation blocks;

  /// Admission. Transfers have a gate of their own: shutdown closes it but does not drain it, since a stopped peer
  /// would eat the deadline; the arenas' counts are what it waits for.
  gate operations;
  gate transfers;

  platform::mutex vector;
  bool closed HOLDFAST_GUARDED_BY(vector) = false;
  bool witnessed HOLDFAST_GUARDED_BY(vector) = false;
  evidence gone;  // what the witness proves; written once, before `witnessed`
  std::uint32_t pooled_count HOLDFAST_GUARDED_BY(vector) = 0;
  arena* last_pooled HOLDFAST_GUARDED_BY(vector) = nullptr;
  // Pooled and dedicated, in the order in which they were published.
  intrusive_list<arena, service_hook> in_service HOLDFAST_GUARDED_BY(vector);
  // For walkers without a lock: every pooled arena there ever was room for, vacant ones included.
  platform::atomic<arena*> first_pooled{nullptr};

  // Registrations that are not known to be gone, and spans that a device may still write.
  quarantine held;
  retiring_list retiring;
  growth growing;
  reclaimer reclaiming;
  shutdown_process ending;

 private:
  void leave(arena& leaving) noexcept HOLDFAST_REQUIRES(vector);
  friend class ref_counted<pool_core>;
  pool_core(std::uint64_t id, platform::pages& pages, const task_environment& environment, capacity_ledger& ledger,
            backend& device, const settings& options, std::shared_ptr<void> surroundings) noexcept;
  ~pool_core();
};

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
