// One registered block of pages, cut into spans.
//
// Why this exists: registering is slow, so it is done for a large block, and small buffers are cut out of it without
// touching the device. An arena may leave service while buffers and transfers still use it; what may happen to its
// pages then is decided here and in the retiring list.
//
// Ownership   Counted activities keep it: its registration (while it is in service or on the retiring list), an unmap
//             that was submitted, spans that outlive its service, a shutdown that reports about it. A pooled arena that
//             was published stays in the pool's chain, so that walkers need no lock; once nothing keeps it any more it
//             is vacant, and the next pooled arena is built in its place (docs/decisions/0030).
// Units       Bytes and granules.
// Threading   One lock (pinned suballocator) guards state, suballocator and counts. Cutting tests "in service" and
//             counts the span in the same section in which the granules leave the suballocator; leaving service is a
//             change of state under the same lock. So nothing is granted from an arena that left, and no other lock
//             is needed to find out (docs/decisions/0020).
// Idleness    Releasing a span reads no clock. A sweep that finds the arena empty notes the time and how many spans
//             were ever cut; if that number is the same at a later sweep, the arena was empty all the time between.
// Failure     By value.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/capacity_ledger.hpp>
#include <holdfast/base/extent_index.hpp>
#include <holdfast/base/gate.hpp>
#include <holdfast/base/intrusive_list.hpp>
#include <holdfast/base/peer.hpp>
#include <holdfast/base/quarantine.hpp>
#include <holdfast/base/thread_annotations.hpp>
#include <holdfast/base/work_item.hpp>
#include <holdfast/pinned/backend.hpp>
#include <holdfast/pinned/block.hpp>
#include <holdfast/pinned/settings.hpp>
#include <holdfast/pinned/span.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/mutex.hpp>
#include <holdfast/platform/ref_count.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace holdfast::inline HOLDFAST_ABI::pinned {

class pool_core;

enum class arena_state : std::uint8_t { building, published, retiring };

/// Why an arena left service, in the order of the event `arena_retired`.
enum class retire_reason : std::uint8_t { reclaim, shutdown, cancelled, closed, failed, pressure };

/// How far the unmap of a retired arena came.
enum class unmap_progress : std::uint8_t { none, submitted, confirmed, refused, unknown, withheld };

/// What a sweep goes by, in the order of the event `reclaim_began`.
enum class reclaim_mode : std::uint8_t {
  timed,     // by age and warm floor
  asked,     // the same, because the embedder asked
  pressure,  // the budget refused: whatever nobody uses goes
};

struct reclaim_rule {
  reclaim_mode mode = reclaim_mode::timed;
  platform::time_point now{};
  std::int64_t after_ns = 0;
  /// Whether the warm floor lets this arena go.
  bool above_floor = false;
};

struct retiring_hook;
struct service_hook;

class arena final : public unmap_request,
                    public work_item,
                    public quarantine_entry,
                    public list_hook<retiring_hook>,
                    public list_hook<service_hook> {
 public:
  /// An arena of `granules` that is not registered yet, with all its bookkeeping; null if host memory is out (site
  /// "pinned.arena"). A pooled one takes the place of a vacant one of the chain, if there is one.
  static arena* make(pool_core& pool, std::uint32_t granules, bool dedicated) noexcept;
  ~arena();

  // ---- Building: one thread, before anybody else knows the arena ----
  page_block& block() noexcept { return block_; }
  /// The registration exists; `charge` is what it holds in the books until it is settled.
  void registered(const mapped_range& range, grant charge) noexcept;

  // ---- Cutting ----
  enum class cut_answer : std::uint8_t { granted, no_room, needs_object, out_of_service };
  struct cut_result {
    cut_answer answer;
    span* granted;
  };
  /// Cuts `granules` for `length` bytes; the span has one owner. Uses an unused object of its own, else `carried`, which
  /// is null afterwards. No other arena's lock is held.
  cut_result cut(std::uint32_t granules, std::uint64_t length, span*& carried) noexcept;
  /// The same before it is published: by who built it.
  cut_result cut_first(std::uint32_t granules, std::uint64_t length, span*& carried) noexcept;
  /// Whether a request of `granules` would be granted now: only for an arena that nobody else knows yet.
  bool has_room(std::uint32_t granules) noexcept;
  /// The last owner of `released` let go.
  void give_back(span& released) noexcept;

  // ---- Transfers ----
  /// False: out of service; nothing was counted.
  bool begin_transfer(span& held) noexcept;
  void end_transfer(span& held) noexcept;
  /// `operation` ended with an unknown fate: the quarantine keeps the share of `held`. `entered`: it is there already.
  void end_transfer_unknown(span& held, std::uint64_t operation, bool entered) noexcept;
  /// The fate of `operation` is unknown for now (its waiter is told), but it may still end.
  void quarantine(span& held, std::uint64_t operation, quarantine_reason reason) noexcept;
  /// It ended after all.
  void discharge(span& held, const evidence& shown) noexcept;

  std::optional<remote_reference> reference(const span& named) noexcept;

  // ---- In service, and out of it: the pool's arena vector lock is held ----
  /// In service. `adopted`: nobody waited for it.
  void publish(bool adopted) noexcept;
  /// Out of service: nothing is granted from it any more. Spans that are left keep the arena from here on.
  void retire(retire_reason reason) noexcept;

  enum class idle_answer : std::uint8_t {
    in_use,
    waits,   // empty, but not for long enough
    kept,    // empty; neither its age nor time will make it go
    leaves,  // out of service now
  };
  /// Finds out whether nobody uses it, and if `rule` lets it go takes it out of service in the same section.
  idle_answer retire_if_idle(const reclaim_rule& rule) noexcept;

  // ---- Giving the registration back: no lock is held ----
  /// Submits the unmap as soon as no transfer is in flight (then by the last one that ends), unless it is withheld; or
  /// again, if it was refused and may be asked for once more.
  void unmap_when_idle() noexcept;
  /// Whether a sweep has to come back to it: an answer may be late, a refused unmap may be asked for again. Reports an
  /// answer that is later than `bound` allows, once.
  bool look_after(platform::time_point now, std::int64_t bound_ns) noexcept;
  /// A sweep waits at `answers` until the unmap was answered; nothing is entered if it was already.
  void join_sweep(gate& answers) noexcept;
  /// The sweep's time is over: what was not submitted will not be (a device may still write). Answers how the unmap
  /// stands.
  unmap_progress leave_sweep() noexcept;
  /// Its registration is not known to be gone, and nobody waits any more. Once: the first reason counts.
  void report_unconfirmed(quarantine_reason reason) noexcept;

  /// True for exactly one caller, who then calls `settle`.
  bool claim_settle() noexcept;
  bool settled() const noexcept { return settled_.load(std::memory_order_acquire); }
  /// The registration is gone, as `shown` proves: makes the pages freeable, then gives the charge back, then leaves the
  /// retiring list. Spans that it covers leave the quarantine with their arena. Answers how many are left, whose fate is
  /// unknown: then the pages leak. May destroy the arena.
  std::uint32_t settle(const evidence& shown) noexcept;
  /// The pool goes without a shutdown: nothing of it will leave the quarantine, so nothing stays or enters there.
  void forget() noexcept;

  // ---- Activities that keep the arena ----
  void add_share() noexcept;
  /// May destroy the arena, and the pool with it.
  void drop_share() noexcept;

  std::uint64_t generation() const noexcept { return region; }
  std::uint64_t charge_bytes() const noexcept { return charge_bytes_; }
  bool dedicated() const noexcept { return dedicated_; }
  /// Whether it is in the pool's list of arenas in service; guarded by the vector lock.
  bool serving() const noexcept { return list_hook<service_hook>::linked(); }

  struct numbers {
    arena_state state;
    std::uint32_t live;
    std::uint32_t in_flight;
    std::uint32_t quarantined;
    std::uint64_t quarantined_granules;
    std::uint32_t largest_free;
    std::uint64_t free_granules;
    unmap_progress unmap;
    std::uint32_t unmap_attempts;
    std::uint32_t granules;
    std::int64_t empty_since_ns;  // as a sweep saw it; `reclaim_never`: not empty, or not seen yet
    std::int64_t retired_ns;
    retire_reason why_retired;
  };
  numbers observe() noexcept;

  // The chain of pooled arenas, in order of creation; set once, under the vector lock.
  platform::atomic<arena*> next_pooled{nullptr};
  bool in_chain = false;
  // The chain of one shutdown's sweep, and the chain of who takes arenas off the retiring list.
  arena* next_swept = nullptr;
  arena* next_claimed = nullptr;
  // The chain of the sweep that took it out of service.
  arena* next_reclaimed = nullptr;
  // The chain of one timed sweep, which looks after what is late.
  arena* next_looked_after = nullptr;
  // In the chain, and kept by nothing: whoever sets it to false may build another arena here.
  platform::atomic<bool> vacant{false};

 private:
  static constexpr std::uint64_t no_spans = UINT64_MAX;

  arena(pool_core& pool, std::uint32_t granules, bool dedicated) noexcept;
  // unmap_request
  void unmapped(unmap_verdict verdict) noexcept override;
  // work_item: submits the unmap away from the thread on which the last transfer ended
  void run() noexcept override;
  void drop() noexcept override;

  void rebuild(std::uint32_t granules) noexcept;
  cut_result cut_locked(std::uint32_t granules, std::uint64_t length, span*& carried) noexcept
      HOLDFAST_REQUIRES(mutex_);
  void hold_unconfirmed(quarantine_reason reason) noexcept HOLDFAST_REQUIRES(mutex_);
  void leave_service(retire_reason reason) noexcept HOLDFAST_REQUIRES(mutex_);
  bool may_ask_again() const noexcept HOLDFAST_REQUIRES(mutex_);
  std::uint64_t free_granules() const noexcept HOLDFAST_REQUIRES(mutex_);
  void put_back(span& released) noexcept HOLDFAST_REQUIRES(mutex_);
  void keep_object(extent_node* unused) noexcept HOLDFAST_REQUIRES(mutex_);
  void free_objects() noexcept;
  void submit_unmap() noexcept;
  void enter_quarantine(span& held, std::uint64_t operation, quarantine_reason reason) noexcept
      HOLDFAST_REQUIRES(mutex_);
  void count_out(span& held) noexcept HOLDFAST_REQUIRES(mutex_);
  /// Spans whose share the quarantine has leave it: by evidence, or given up. True: the arena's share for spans is the
  /// caller's.
  bool end_lost_spans(const evidence* shown) noexcept HOLDFAST_REQUIRES(mutex_);
  bool idle_for_unmap() const noexcept HOLDFAST_REQUIRES(mutex_);
  void after_transfer(bool submit) noexcept;

  pool_core& pool_;
  const bool dedicated_;
  packed_key key_;
  std::uint64_t charge_bytes_ = 0;
  platform::ref_count shares_{1};  // the first is the registration's
  platform::atomic<bool> settled_{false};

  platform::mutex mutex_;
  arena_state state_ HOLDFAST_GUARDED_BY(mutex_) = arena_state::building;
  extent_index index_ HOLDFAST_GUARDED_BY(mutex_);
  std::uint32_t live_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint32_t in_flight_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint32_t quarantined_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint64_t quarantined_granules_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::uint64_t spans_issued_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  // What the last sweep that found it empty saw: valid while no span was cut since.
  std::uint64_t spans_when_empty_ HOLDFAST_GUARDED_BY(mutex_) = no_spans;
  platform::time_point empty_since_ HOLDFAST_GUARDED_BY(mutex_){};
  // Whether its falling empty is worth a sweep, and whether one is coming.
  bool wants_watch_ HOLDFAST_GUARDED_BY(mutex_) = false;
  bool watched_ HOLDFAST_GUARDED_BY(mutex_) = false;
  platform::time_point retired_at_ HOLDFAST_GUARDED_BY(mutex_){};
  retire_reason why_retired_ HOLDFAST_GUARDED_BY(mutex_) = retire_reason::reclaim;
  platform::time_point submitted_at_ HOLDFAST_GUARDED_BY(mutex_){};
  bool overdue_ HOLDFAST_GUARDED_BY(mutex_) = false;
  bool unconfirmed_ HOLDFAST_GUARDED_BY(mutex_) = false;
  bool forgotten_ HOLDFAST_GUARDED_BY(mutex_) = false;
  unmap_progress unmap_ HOLDFAST_GUARDED_BY(mutex_) = unmap_progress::none;
  std::uint32_t unmap_attempts_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  bool unmap_wanted_ HOLDFAST_GUARDED_BY(mutex_) = false;
  bool unmap_posted_ HOLDFAST_GUARDED_BY(mutex_) = false;
  bool registration_gone_ HOLDFAST_GUARDED_BY(mutex_) = false;
  gate::ticket sweep_ticket_ HOLDFAST_GUARDED_BY(mutex_);
  span* unused_ HOLDFAST_GUARDED_BY(mutex_) = nullptr;
  // The last span that came back, not joined with its neighbors yet: free for all who ask, and granted again without a
  // search to who wants exactly this size. It is joined when the next one comes, or when nothing else is large enough.
  span* warm_ HOLDFAST_GUARDED_BY(mutex_) = nullptr;
  span* lost_ HOLDFAST_GUARDED_BY(mutex_) = nullptr;  // spans whose share the quarantine has
  intrusive_list<span, span_hook> objects_ HOLDFAST_GUARDED_BY(mutex_);

  grant charge_;
  // Destroyed first (C++ destroys bottom-up): the pages go, or leak, while everything that names them is still there.
  page_block block_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
