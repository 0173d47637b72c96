#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/arena.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/pinned/core.hpp>
#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/telemetry/emit.hpp>

#include <memory>
#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::pinned {

arena* arena::make(pool_core& pool, std::uint32_t granules, bool dedicated) noexcept {
  if (platform::heap_fault("pinned.arena")) return nullptr;
  return new (std::nothrow) arena(pool, granules, dedicated);
}

arena::arena(pool_core& pool, std::uint32_t granules, bool dedicated) noexcept
    : pool_(pool),
      granules_(granules),
      dedicated_(dedicated),
      mutex_(lock_ranks::pinned_suballocator),
      index_(granules) {
  pool_.add_share();
}

arena::~arena() { free_objects(); }

void arena::free_objects() noexcept {
  scoped_lock lock(mutex_);
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
  if (state_ == arena_state::retiring) return {cut_answer::out_of_service, nullptr};
  span* object = unused_;
  if (object != nullptr) {
    unused_ = object->next_unused_;
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
  ++live_;
  std::destroy_at(&object->owners_);
  std::construct_at(&object->owners_, 1u);
  object->owner_ = this;
  object->data_ = block_.base() + std::size_t{object->offset()} * granule_bytes;
  object->length_ = length;
  // Numbers of different arenas never meet: the region's number stands above this arena's own count.
  object->id_ = (region << 40) | ++spans_issued_;
  emit::span_granted(pool_.log, object->id_, region, object->offset(), granules, length);
  return {cut_answer::granted, object};
}

bool arena::has_room(std::uint32_t granules) noexcept {
  scoped_lock lock(mutex_);
  return index_.largest_free() >= granules;
}

void arena::give_back(span& released) noexcept {
  bool last = false;
  bool end_pages = false;
  {
    scoped_lock lock(mutex_);
    emit::span_released(pool_.log, released.id_, region, released.offset(), released.granules());
    // Granules first, count second: an arena must not look empty while granules are marked used.
    for (extent_node* spare = index_.put(released); spare != nullptr;) {
      extent_node* const next = spare->next_spare();
      keep_object(spare);
      spare = next;
    }
    --live_;
    last = live_ == 0 && state_ == arena_state::retiring;
    end_pages = last && registration_gone_;
  }
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

void arena::count_quarantined(span& held) noexcept {
  ++quarantined_;
  quarantined_granules_ += held.granules();
  emit::span_quarantined(pool_.log, held.id_, region, held.granules());
}

void arena::end_transfer_unknown(span& held, bool counted) noexcept {
  scoped_lock lock(mutex_);
  held.next_quarantined_ = lost_;
  lost_ = &held;
  if (!counted) count_quarantined(held);
  --in_flight_;
  emit::hold_dropped(pool_.log, held.id_, region, in_flight_);
}

void arena::quarantine(span& held) noexcept {
  scoped_lock lock(mutex_);
  count_quarantined(held);
}

void arena::discharge(span& held) noexcept {
  scoped_lock lock(mutex_);
  --quarantined_;
  quarantined_granules_ -= held.granules();
  emit::span_discharged(pool_.log, held.id_, region, held.granules());
}

void arena::after_transfer(bool submit) noexcept {
  // The thread on which a transfer ends belongs to the device: what follows is somebody else's work.
  if (submit && !pool_.environment.executor().post(*this)) unmap_when_idle();
}

std::optional<remote_reference> arena::reference(const span& named) noexcept {
  scoped_lock lock(mutex_);
  if (state_ != arena_state::published) return std::nullopt;
  return remote_reference{reinterpret_cast<std::uintptr_t>(named.data_), named.length_, key_, region,
                          pool_.incarnation};
}

// ---- In service, and out of it ------------------------------------------------------------------

void arena::publish(bool adopted) noexcept {
  scoped_lock lock(mutex_);
  state_ = arena_state::published;
  emit::arena_published(pool_.log, region, region, block_.bytes(), charge_bytes_, dedicated_, adopted);
}

void arena::retire(retire_reason reason) noexcept {
  scoped_lock lock(mutex_);
  state_ = arena_state::retiring;
  if (live_ != 0) add_share();  // dropped by the last span
  emit::arena_retired(pool_.log, region, region, live_, in_flight_, reason);
}

// ---- Giving the registration back ---------------------------------------------------------------

bool arena::idle_for_unmap() const noexcept { return in_flight_ == 0 && quarantined_ == 0; }

void arena::unmap_when_idle() noexcept {
  {
    scoped_lock lock(mutex_);
    unmap_posted_ = false;
    if (unmap_ != unmap_progress::none || settled()) return;
    // A device that is still writing keeps its registration, whatever the deadline says.
    if (!idle_for_unmap()) {
      unmap_wanted_ = true;
      return;
    }
    unmap_ = unmap_progress::submitted;
    ++unmap_attempts_;
    add_share();  // dropped by the answer
    emit::unmap_submitted(pool_.log, region, region, unmap_attempts_);
  }
  pool_.device.submit_unmap(*this);
}

void arena::run() noexcept { unmap_when_idle(); }

void arena::drop() noexcept { unmap_when_idle(); }

void arena::join_sweep(gate& answers) noexcept {
  scoped_lock lock(mutex_);
  if (unmap_ == unmap_progress::none || unmap_ == unmap_progress::submitted) sweep_ticket_ = answers.enter();
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

void arena::report_unconfirmed(unconfirmed_reason reason) noexcept {
  emit::arena_unconfirmed(pool_.log, region, region, charge_bytes_, reason);
}

void arena::unmapped(unmap_verdict verdict) noexcept {
  gate::ticket told;
  {
    scoped_lock lock(mutex_);
    emit::unmap_answered(pool_.log, region, region, verdict);
    // Only this one word means that the registration is gone. Everything else leaves pages and charge where they are.
    if (verdict == unmap_verdict::confirmed)
      unmap_ = unmap_progress::confirmed;
    else
      unmap_ = verdict == unmap_verdict::refused ? unmap_progress::refused : unmap_progress::unknown;
    told = std::move(sweep_ticket_);
  }
  if (verdict == unmap_verdict::confirmed && claim_settle()) settle(false, false);
  told.leave();
  drop_share();
}

bool arena::claim_settle() noexcept { return !settled_.exchange(true, std::memory_order_acq_rel); }

std::uint32_t arena::settle(bool forced, bool fences_gets) noexcept {
  bool end_pages = false;
  bool drop_spans = false;
  std::uint32_t unknown = 0;
  {
    scoped_lock lock(mutex_);
    if (fences_gets) {
      for (; lost_ != nullptr; lost_ = lost_->next_quarantined_) {
        emit::span_discharged(pool_.log, lost_->id_, region, lost_->granules());
        --quarantined_;
        quarantined_granules_ -= lost_->granules();
        // The granules go with the arena: nothing is cut from it any more.
        --live_;
        drop_spans = live_ == 0;
      }
    }
    unknown = quarantined_;
    if (unknown == 0) {
      block_.registration_gone();
      registration_gone_ = true;
      end_pages = live_ == 0;
    }
    emit::arena_settled(pool_.log, region, region, charge_bytes_, forced);
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
  // A walker may stand on an arena of the chain: its memory goes with the pool.
  if (!in_chain) delete this;
  pool.drop_share();
}

bool arena::in_service() noexcept {
  scoped_lock lock(mutex_);
  return state_ == arena_state::published;
}

arena::numbers arena::observe() noexcept {
  scoped_lock lock(mutex_);
  return {state_,
          live_,
          in_flight_,
          quarantined_,
          quarantined_granules_,
          index_.largest_free(),
          index_.free_granules(),
          unmap_,
          unmap_attempts_,
          live_ == 0};
}

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
