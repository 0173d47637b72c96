#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/arena.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/pinned/core.hpp>
#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/platform/stop_process.hpp>
#include <holdfast/telemetry/emit.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::pinned {

arena* arena::make(pool_core& pool, std::uint32_t granules, bool dedicated) noexcept {
  if (platform::heap_fault("pinned.arena")) return nullptr;
  if (!dedicated) {
    for (arena* one = pool.first_pooled.load(std::memory_order_acquire); one != nullptr;
         one = one->next_pooled.load(std::memory_order_acquire)) {
      if (!one->vacant.exchange(false, std::memory_order_acq_rel)) continue;
      one->rebuild(granules);
      return one;
    }
  }
  return new (std::nothrow) arena(pool, granules, dedicated);
}

arena::arena(pool_core& pool, std::uint32_t granules, bool dedicated) noexcept
    : pool_(pool), dedicated_(dedicated), mutex_(lock_ranks::pinned_suballocator), index_(granules) {
  pool_.add_share();
}

arena::~arena() { free_objects(); }

// A walker may look at it meanwhile: what it finds is an arena out of service.
void arena::rebuild(std::uint32_t granules) noexcept {
  pool_.add_share();
  std::destroy_at(&shares_);
  std::construct_at(&shares_, 1u);
  settled_.store(false, std::memory_order_relaxed);
  scoped_lock lock(mutex_);
  state_ = arena_state::building;
  std::destroy_at(&index_);
  std::construct_at(&index_, granules);
  spans_issued_ = 0;
  spans_when_empty_ = no_spans;
  unmap_ = unmap_progress::none;
  unmap_attempts_ = 0;
  unmap_wanted_ = unmap_posted_ = registration_gone_ = overdue_ = unconfirmed_ = forgotten_ = watched_ = false;
}

void arena::free_objects() noexcept {
  scoped_lock lock(mutex_);
  unused_ = warm_ = nullptr;
  while (span* const object = objects_.pop_front()) delete object;
}

void arena::registered(const mapped_range& range, grant charge) noexcept {
  region = range.region;
  key_ = range.key;
  charge_bytes_ = charge.bytes();
  charge_ = std::move(charge);
}

// ---- Cutting ------------------------------------------------------------------------------------

arena::cut_result arena::cut(std::uint32_t granules, std::uint64_t length, span*& carried) noexcept {
  scoped_lock lock(mutex_);
  if (state_ != arena_state::published) return {cut_answer::out_of_service, nullptr};
  return cut_locked(granules, length, carried);
}

arena::cut_result arena::cut_first(std::uint32_t granules, std::uint64_t length, span*& carried) noexcept {
  scoped_lock lock(mutex_);
  return cut_locked(granules, length, carried);
}

arena::cut_result arena::cut_locked(std::uint32_t granules, std::uint64_t length, span*& carried) noexcept {
  span* object = nullptr;
  if (warm_ != nullptr && warm_->granules() == granules) {
    object = std::exchange(warm_, nullptr);
  } else {
    if (warm_ != nullptr && index_.largest_free() < granules) put_back(*std::exchange(warm_, nullptr));
    if (unused_ != nullptr) {
      object = std::exchange(unused_, unused_->next_unused_);
    } else {
      if (index_.largest_free() < granules) return {cut_answer::no_room, nullptr};
      // The object comes before the granules: granules that nobody can name would be lost.
      if (carried == nullptr) return {cut_answer::needs_object, nullptr};
      object = std::exchange(carried, nullptr);
      objects_.push_back(*object);
    }
    const extent_index::taken taken = index_.take(granules, *object);
    keep_object(taken.spare);
    if (!taken.granted) {
      keep_object(object);
      return {cut_answer::no_room, nullptr};
    }
    object->owner_ = this;
    object->data_ = block_.base() + std::size_t{object->offset()} * granule_bytes;
  }
  ++live_;
  std::destroy_at(&object->owners_);
  std::construct_at(&object->owners_, 1u);
  object->length_ = length;
  // Numbers of different arenas never meet: the region's number stands above this arena's own count.
  object->id_ = (region << 40) | ++spans_issued_;
  emit::span_granted(pool_.log, object->id_, region, object->offset(), granules, length, free_granules());
  return {cut_answer::granted, object};
}

std::uint64_t arena::free_granules() const noexcept {
  return index_.free_granules() + (warm_ == nullptr ? 0 : warm_->granules());
}

void arena::put_back(span& released) noexcept {
  for (extent_node* spare = index_.put(released); spare != nullptr;) {
    extent_node* const next = spare->next_spare();
    keep_object(spare);
    spare = next;
  }
}

bool arena::has_room(std::uint32_t granules) noexcept {
  scoped_lock lock(mutex_);
  return index_.largest_free() >= granules;
}

void arena::give_back(span& released) noexcept {
  bool last = false;
  bool end_pages = false;
  intrusive_ptr<pool_core> to_be_watched;
  if (pool_.options.scrub_on_free) std::memset(released.data_, 0, std::size_t{released.granules()} * granule_bytes);
  {
    scoped_lock lock(mutex_);
    // Granules first, count second: an arena must not look empty while granules are marked used.
    if (span* const colder = std::exchange(warm_, &released)) put_back(*colder);
    emit::span_released(pool_.log, released.id_, region, released.offset(), released.granules(), free_granules());
    --live_;
    last = live_ == 0 && state_ == arena_state::retiring;
    end_pages = last && registration_gone_;
    // From here on nothing of ours may keep the pool.
    if (live_ == 0 && wants_watch_ && !std::exchange(watched_, true)) to_be_watched = intrusive_ptr<pool_core>(&pool_);
  }
  if (to_be_watched) to_be_watched->reclaiming.watch();
  if (!last) return;
  if (end_pages) block_.give_back();
  drop_share();
}

void arena::keep_object(extent_node* unused) noexcept {
  if (unused == nullptr) return;
  span* const object = static_cast<span*>(unused);
  object->next_unused_ = unused_;
  unused_ = object;
}

// ---- Transfers ----------------------------------------------------------------------------------

bool arena::begin_transfer(span& held) noexcept {
  scoped_lock lock(mutex_);
  if (state_ != arena_state::published) return false;
  ++in_flight_;
  emit::hold_taken(pool_.log, held.id_, region, in_flight_);
  return true;
}

void arena::end_transfer(span& held) noexcept {
  bool submit = false;
  {
    scoped_lock lock(mutex_);
    --in_flight_;
    emit::hold_dropped(pool_.log, held.id_, region, in_flight_);
    submit = idle_for_unmap() && unmap_wanted_ && !std::exchange(unmap_posted_, true);
  }
  after_transfer(submit);
}

void arena::enter_quarantine(span& held, std::uint64_t operation, quarantine_reason reason) noexcept {
  ++quarantined_;
  quarantined_granules_ += held.granules();
  emit::span_quarantined(pool_.log, held.id_, region, held.granules());
  quarantine_terms terms;
  terms.kind = quarantine_kind::span;
  terms.id = held.id_;
  terms.reason = reason;
  terms.bytes = std::uint64_t{held.granules()} * granule_bytes;
  terms.operation = operation;
  terms.incarnation = pool_.incarnation;
  terms.epoch = pool_.epoch;
  terms.needs_gets_fenced = true;
  static_cast<void>(pool_.held.admit(held.kept_, terms, pool_.environment.clock().now()));
}

void arena::count_out(span& held) noexcept {
  --quarantined_;
  quarantined_granules_ -= held.granules();
}

void arena::end_transfer_unknown(span& held, std::uint64_t operation, bool entered) noexcept {
  bool last = false;
  {
    scoped_lock lock(mutex_);
    held.next_quarantined_ = lost_;
    lost_ = &held;
    if (!entered) enter_quarantine(held, operation, quarantine_reason::indeterminate);
    --in_flight_;
    emit::hold_dropped(pool_.log, held.id_, region, in_flight_);
    if (forgotten_) last = end_lost_spans(nullptr);
  }
  if (last) drop_share();
}

void arena::quarantine(span& held, std::uint64_t operation, quarantine_reason reason) noexcept {
  scoped_lock lock(mutex_);
  enter_quarantine(held, operation, reason);
}

void arena::discharge(span& held, const evidence& shown) noexcept {
  scoped_lock lock(mutex_);
  if (!pool_.held.discharge(held.kept_, shown)) return;
  count_out(held);
  emit::span_discharged(pool_.log, held.id_, region, held.granules());
}

// The granules go with the arena: nothing is cut from it any more. Without evidence they leak with its pages.
bool arena::end_lost_spans(const evidence* shown) noexcept {
  bool last = false;
  while (span* const one = lost_) {
    lost_ = one->next_quarantined_;
    if (shown != nullptr && pool_.held.discharge(one->kept_, *shown)) {
      count_out(*one);
      emit::span_discharged(pool_.log, one->id_, region, one->granules());
    } else {
      static_cast<void>(pool_.held.abandon(one->kept_));
    }
    // The quarantine's share. Who has another (a buffer in an operation that is being destroyed) counts it out himself.
    if (one->owners_.decrement()) last = --live_ == 0;
  }
  return last;
}

void arena::after_transfer(bool submit) noexcept {
  // The thread on which a transfer ends belongs to the device: what follows is somebody else's work.
  if (submit && !pool_.environment.executor().post(*this)) unmap_when_idle();
}

std::optional<remote_reference> arena::reference(const span& named) noexcept {
  scoped_lock lock(mutex_);
  if (state_ != arena_state::published) return std::nullopt;
  emit::reference_made(pool_.log, named.id_, region, std::uint64_t{named.offset()} * granule_bytes, named.length_,
                       pool_.incarnation);
  return remote_reference{reinterpret_cast<std::uintptr_t>(named.data_), named.length_, key_, region,
                          pool_.incarnation};
}

// ---- In service, and out of it ------------------------------------------------------------------

void arena::publish(bool adopted) noexcept {
  scoped_lock lock(mutex_);
  state_ = arena_state::published;
  wants_watch_ = dedicated_ || pool_.options.arena_reclaim_after_ns != reclaim_never;
  watched_ = live_ == 0;
  emit::arena_published(pool_.log, region, region, block_.bytes(), charge_bytes_, dedicated_, adopted);
}

void arena::retire(retire_reason reason) noexcept {
  scoped_lock lock(mutex_);
  leave_service(reason);
}

void arena::leave_service(retire_reason reason) noexcept {
  state_ = arena_state::retiring;
  wants_watch_ = false;
  why_retired_ = reason;
  retired_at_ = pool_.environment.clock().now();
  if (live_ != 0) add_share();  // dropped by the last span
  emit::arena_retired(pool_.log, region, region, live_, in_flight_, reason);
}

arena::idle_answer arena::retire_if_idle(const reclaim_rule& rule) noexcept {
  scoped_lock lock(mutex_);
  if (live_ != 0 || in_flight_ != 0) {
    watched_ = false;
    return idle_answer::in_use;
  }
  if (rule.mode == reclaim_mode::pressure) {
    leave_service(retire_reason::pressure);
    return idle_answer::leaves;
  }
  if (!dedicated_) {
    if (rule.after_ns == reclaim_never) return idle_answer::kept;
    if (spans_when_empty_ != spans_issued_) {
      spans_when_empty_ = spans_issued_;
      // Not `rule.now`: a sweep that was held up since it read the clock would say that it was empty before it was.
      empty_since_ = pool_.environment.clock().now();
    }
    // The stamp may be newer than the clock of a sweep that was held up: then it has no age yet.
    const std::int64_t age_ns = std::max<std::int64_t>((rule.now - empty_since_).count(), 0);
    if (age_ns < rule.after_ns) return idle_answer::waits;
    if (!rule.above_floor) return idle_answer::kept;
  }
  leave_service(retire_reason::reclaim);
  return idle_answer::leaves;
}

// ---- Giving the registration back ---------------------------------------------------------------

bool arena::idle_for_unmap() const noexcept { return in_flight_ == 0 && quarantined_ == 0; }

// The first time does not count, and only a refusal changed nothing.
bool arena::may_ask_again() const noexcept {
  return unmap_ == unmap_progress::refused && unmap_attempts_ <= pool_.options.unmap_retry_max;
}

void arena::unmap_when_idle() noexcept {
  {
    scoped_lock lock(mutex_);
    unmap_posted_ = false;
    const bool again = may_ask_again();
    if ((unmap_ != unmap_progress::none && !again) || settled()) return;
    // A device that is still writing keeps its registration, whatever the deadline says.
    if (!idle_for_unmap()) {
      unmap_wanted_ = true;
      return;
    }
    unmap_ = unmap_progress::submitted;
    ++unmap_attempts_;
    submitted_at_ = pool_.environment.clock().now();
    add_share();  // dropped by the answer
    if (again) emit::unmap_retrying(pool_.log, region, region, unmap_attempts_);
    emit::unmap_submitted(pool_.log, region, region, unmap_attempts_);
  }
  pool_.reclaiming.unmap_submitted();
  pool_.device.submit_unmap(*this);
}

bool arena::look_after(platform::time_point now, std::int64_t bound_ns) noexcept {
  scoped_lock lock(mutex_);
  if (may_ask_again()) return true;
  if (unmap_ != unmap_progress::submitted || overdue_) return false;
  if ((now - submitted_at_).count() < bound_ns) return true;
  overdue_ = true;
  hold_unconfirmed(quarantine_reason::unmap_timeout);
  return false;
}

void arena::run() noexcept { unmap_when_idle(); }

void arena::drop() noexcept { unmap_when_idle(); }

void arena::join_sweep(gate& answers) noexcept {
  scoped_lock lock(mutex_);
  if (unmap_ == unmap_progress::none || unmap_ == unmap_progress::submitted || may_ask_again())
    sweep_ticket_ = answers.enter();
}

unmap_progress arena::leave_sweep() noexcept {
  gate::ticket told;
  scoped_lock lock(mutex_);
  told = std::move(sweep_ticket_);
  if (unmap_ == unmap_progress::none) unmap_ = unmap_progress::withheld;
  if (unmap_ == unmap_progress::withheld && in_flight_ != 0)
    emit::shutdown_outlasted(pool_.log, region, in_flight_, block_.bytes());
  const unmap_progress stands = unmap_;
  lock.unlock();
  told.leave();
  return stands;
}

void arena::report_unconfirmed(quarantine_reason reason) noexcept {
  scoped_lock lock(mutex_);
  hold_unconfirmed(reason);
}

void arena::hold_unconfirmed(quarantine_reason reason) noexcept {
  if (settled() || forgotten_) return;
  if (std::exchange(unconfirmed_, true)) {
    static_cast<void>(pool_.held.restate(*this, reason));
    return;
  }
  quarantine_terms terms;
  terms.kind = quarantine_kind::arena;
  terms.id = region;
  terms.reason = reason;
  terms.bytes = charge_bytes_;
  terms.answer = true;
  terms.incarnation = pool_.incarnation;
  terms.epoch = pool_.epoch;
  static_cast<void>(pool_.held.admit(*this, terms, pool_.environment.clock().now()));
  emit::arena_unconfirmed(pool_.log, region, region, charge_bytes_, reason);
}

void arena::unmapped(unmap_verdict verdict) noexcept {
  gate::ticket told;
  bool again = false;
  {
    scoped_lock lock(mutex_);
    emit::unmap_answered(pool_.log, region, region, verdict);
    // Only this one word means that the registration is gone. Everything else leaves pages and charge where they are.
    if (verdict == unmap_verdict::confirmed)
      unmap_ = unmap_progress::confirmed;
    else
      unmap_ = verdict == unmap_verdict::refused ? unmap_progress::refused : unmap_progress::unknown;
    again = may_ask_again();
    if (!again) {
      told = std::move(sweep_ticket_);
      if (verdict == unmap_verdict::refused)
        hold_unconfirmed(quarantine_reason::unmap_refused);
      else if (verdict == unmap_verdict::unknown)
        hold_unconfirmed(quarantine_reason::unmap_unknown);
    }
  }
  if (verdict == unmap_verdict::confirmed && claim_settle())
    settle(evidence::answered(quarantine_kind::arena, region, true));
  // After the charge is back: who waits for it looks at the books.
  pool_.reclaiming.unmap_answered();
  if (again) pool_.reclaiming.watch();
  told.leave();
  drop_share();
}

bool arena::claim_settle() noexcept { return !settled_.exchange(true, std::memory_order_acq_rel); }

void arena::forget() noexcept {
  bool last = false;
  {
    scoped_lock lock(mutex_);
    forgotten_ = true;
    static_cast<void>(pool_.held.abandon(*this));
    last = end_lost_spans(nullptr);
  }
  if (last) drop_share();
}

std::uint32_t arena::settle(const evidence& shown) noexcept {
  bool end_pages = false;
  bool drop_spans = false;
  std::uint32_t unknown = 0;
  {
    scoped_lock lock(mutex_);
    if (!pool_.held.discharge(*this, shown) && pool_.held.holds(*this))
      platform::stop_process("pinned: a registration was about to be settled without evidence");
    drop_spans = end_lost_spans(&shown);
    unknown = quarantined_;
    if (unknown == 0) {
      block_.registration_gone();
      registration_gone_ = true;
      end_pages = live_ == 0;
    }
    emit::arena_settled(pool_.log, region, region, charge_bytes_, shown.kind() == evidence_kind::witness);
  }
  charge_.release();
  const bool registration_share = pool_.retiring.remove(*this);
  if (end_pages) block_.give_back();
  if (drop_spans) drop_share();
  if (registration_share) drop_share();
  return unknown;
}

void arena::add_share() noexcept { shares_.increment(); }

void arena::drop_share() noexcept {
  if (!shares_.decrement()) return;
  pool_core& pool = pool_;
  // A walker may stand on an arena of the chain: it stays there for the next one.
  if (in_chain) {
    block_.end();
    free_objects();
    vacant.store(true, std::memory_order_release);
  } else {
    delete this;
  }
  pool.drop_share();
}

arena::numbers arena::observe() noexcept {
  scoped_lock lock(mutex_);
  return {state_,
          live_,
          in_flight_,
          quarantined_,
          quarantined_granules_,
          std::max(index_.largest_free(), warm_ == nullptr ? 0 : warm_->granules()),
          free_granules(),
          unmap_,
          unmap_attempts_,
          index_.granules(),
          live_ == 0 && spans_when_empty_ == spans_issued_ ? empty_since_.time_since_epoch().count() : reclaim_never,
          retired_at_.time_since_epoch().count(),
          why_retired_};
}

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
