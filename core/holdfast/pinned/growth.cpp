#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/growth.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/pinned/core.hpp>
#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/telemetry/emit.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::pinned {

namespace {

constexpr const char* alloc = "pinned.alloc";

error closed_error() noexcept { return fail(error_code::shutting_down, alloc).error(); }

}  // namespace

// ---- Waiting ------------------------------------------------------------------------------------

span_waiter::~span_waiter() {
  delete dedicated_;
  if (granted_ != nullptr) granted_->drop_owner();
  if (carried_ != nullptr) span::unmake(carried_);
}

bool span_waiter::bring_object() noexcept {
  carried_ = span::make();
  return carried_ != nullptr;
}

waiter::attached span_waiter::attach() noexcept {
  return pool_.growing.join(*this) ? attached::linked : attached::ready;
}

bool span_waiter::detach() noexcept { return pool_.growing.leave(*this); }

result<buffer> span_waiter::await_resume() noexcept {
  if (end() != wait_end::signaled) return fail(error_code::cancelled, alloc);
  if (granted_ == nullptr) return std::unexpected(why_);
  return buffer(*std::exchange(granted_, nullptr));
}

bool growth::join(span_waiter& one) noexcept {
  builder* submitted = nullptr;
  bool claim = false;
  {
    scoped_lock vector(pool_.vector);
    scoped_lock lock(mutex_);
    if (pool_.closed) {
      one.why_ = closed_error();
      return false;
    }
    one.place_ = ++last_place_;
    submitted = std::exchange(one.dedicated_, nullptr);
    one.line_ = submitted != nullptr ? &submitted->waiting : &line_;
    one.line_->push_back(one);
    if (submitted != nullptr)
      begin(*submitted);
    else
      claim = !std::exchange(claimed_, true);
  }
  if (submitted != nullptr) pool_.device.submit_map(*submitted);
  if (claim) go_on();
  return true;
}

bool growth::leave(span_waiter& one) noexcept {
  scoped_lock lock(mutex_);
  if (!one.linked()) return false;
  one.line_->erase(one);
  return true;
}

void growth::close(told_waiters& told) noexcept {
  scoped_lock lock(mutex_);
  tell_all(line_, closed_error(), told);
  for (builder& record : builders_) tell_all(record.waiting, closed_error(), told);
}

void growth::tell_all(span_waiter::line& line, const error& why, told_waiters& told) noexcept {
  while (span_waiter* const one = line.pop_front()) {
    one->why_ = why;
    told.add(*one);
  }
}

void growth::fail_first(std::uint64_t place, const error& why, told_waiters& told) noexcept {
  for (span_waiter& one : line_) {
    if (one.place_ != place) continue;
    line_.erase(one);
    one.why_ = why;
    told.add(one);
    return;
  }
}

std::uint64_t growth::outstanding() noexcept {
  scoped_lock lock(mutex_);
  return builders_.size();
}

std::uint64_t growth::waiting() noexcept {
  scoped_lock lock(mutex_);
  return line_.size();
}

// ---- The claim ----------------------------------------------------------------------------------

growth::growth(pool_core& pool) noexcept : pool_(pool), mutex_(lock_ranks::pinned_growth) {}

void growth::go_on() noexcept {
  pool_.add_share();
  if (!pool_.environment.executor().post(*this)) drop();
}

void growth::run() noexcept {
  step();
  pool_.drop_share();
}

// The executor was stopped: nobody will build any more, and nobody may wait for it.
void growth::drop() noexcept {
  told_waiters told;
  {
    scoped_lock lock(mutex_);
    tell_all(line_, closed_error(), told);
    claimed_ = false;
  }
  told.tell();
  pool_.drop_share();
}

void growth::step() noexcept {
  for (;;) {
    told_waiters told;
    std::uint64_t place = 0;
    std::uint64_t wanted_bytes = 0;
    std::uint64_t request = 0;
    {
      scoped_lock vector(pool_.vector);
      scoped_lock lock(mutex_);
      if (!line_.empty()) emit::growth_claimed(pool_.log, pool_.id, line_.front().length_);
      // The previous holder of the claim may have built what is needed.
      serve_existing(told);
      if (line_.empty()) {
        claimed_ = false;
      } else {
        place = line_.front().place_;
        request = line_.front().length_;
        wanted_bytes = growth_target(pool_.options, pool_.pooled_count, request, pool_.page_bytes);
      }
    }
    told.tell();
    if (place == 0) return;

    const result<builder*> record = prepare(wanted_bytes, false, alloc);
    if (record) {
      (*record)->asked_for = place;
      (*record)->request = request;
      bool wanted = false;
      {
        scoped_lock lock(mutex_);
        // Everybody may have given up since, or the pool was closed, which empties the line for good.
        wanted = !line_.empty();
        if (wanted) begin(**record);
      }
      if (!wanted) {
        delete *record;
        continue;
      }
      // The claim goes with the map, whoever is still waiting when it is answered.
      pool_.device.submit_map(**record);
      return;
    }
    told_waiters refused;
    {
      scoped_lock lock(mutex_);
      fail_first(place, record.error(), refused);
    }
    refused.tell();
  }
}

void growth::serve_existing(told_waiters& told) noexcept {
  for (auto at = line_.begin(); at != line_.end();) {
    span_waiter& one = *at;
    ++at;
    one.granted_ = pool_.cut_existing(one.granules_, one.length_, one.carried_);
    if (one.granted_ == nullptr) continue;
    line_.erase(one);
    told.add(one);  // who gave up meanwhile gives the span back himself
  }
}

std::uint32_t growth::serve_new(arena& built, told_waiters& told) noexcept {
  std::uint32_t served = 0;
  for (auto at = line_.begin(); at != line_.end();) {
    span_waiter& one = *at;
    ++at;
    if (!built.has_room(one.granules_)) continue;
    line_.erase(one);
    // Asked before it is cut: nobody else can cut this arena, and one that nobody waited for must be born empty.
    if (!told.add(one)) continue;
    one.granted_ = built.cut_first(one.granules_, one.length_, one.carried_).granted;
    if (one.granted_ == nullptr) one.why_ = fail(error_code::corrupt, alloc, built.generation()).error();
    ++served;
  }
  return served;
}

// ---- Building -----------------------------------------------------------------------------------

builder::builder(pool_core& owner, bool is_dedicated) noexcept
    : pool(intrusive_ptr<pool_core>(&owner)), dedicated(is_dedicated) {}

builder::~builder() {
  if (built != nullptr) built->drop_share();
}

void builder::mapped(const result<mapped_range>& answer) noexcept { pool->growing.answered(*this, answer); }

result<builder*> growth::prepare_dedicated(std::uint64_t length) noexcept {
  return prepare(round_up(length, std::max<std::uint64_t>(pool_.page_bytes, granule_bytes)), true, alloc);
}

result<builder*> growth::prepare(std::uint64_t arena_bytes, bool dedicated, const char* operation) noexcept {
  // Everything that can be refused is refused before the first byte is claimed.
  const result<std::uint32_t> granules = granules_for(arena_bytes, operation);
  if (!granules) return std::unexpected(granules.error());
  const capabilities& device = pool_.declared;
  if (arena_bytes > device.max_region_bytes)
    return fail(error_code::limit_exceeded, operation, 0, arena_bytes, device.max_region_bytes);

  if (platform::heap_fault("pinned.builder")) return fail(error_code::out_of_memory, operation, 0, sizeof(builder));
  std::unique_ptr<builder> record(new (std::nothrow) builder(pool_, dedicated));
  if (!record) return fail(error_code::out_of_memory, operation, 0, sizeof(builder));
  record->ticket = pool_.operations.enter();
  if (!record->ticket) return fail(error_code::shutting_down, operation);
  result<reservation> claim = pool_.ledger.reserve(arena_bytes * device.devices);
  if (!claim) {
    claim.error().operation = operation;
    return std::unexpected(claim.error());
  }
  record->claim = std::move(*claim);
  record->built = arena::make(pool_, *granules, dedicated);
  if (record->built == nullptr) return fail(error_code::out_of_memory, operation, 0, sizeof(arena));
  page_block& block = record->built->block();
  const std::uint64_t block_id = pool_.blocks.issue();
  const result<void> pages = block.allocate(pool_.pages, pool_.log, block_id, arena_bytes, device.keeps_tombstones);
  if (!pages) return std::unexpected(pages.error());
  record->address = block.base();
  record->bytes = block.bytes();
  record->block = block_id;
  return record.release();
}

void growth::begin(builder& record) noexcept {
  builders_.push_back(record);
  // From here on a registration may come into being at any time, also long after everybody stopped waiting.
  record.built->block().handed_to_map();
  emit::growth_started(pool_.log, pool_.id, record.bytes, record.dedicated, record.request);
  emit::map_submitted(pool_.log, record.block, record.bytes);
}

void growth::answered(builder& record, const result<mapped_range>& answer) noexcept {
  if (!answer) {
    emit::map_answered(pool_.log, record.block, 0, 0, false);
    return failed(record, answer.error());
  }
  emit::map_answered(pool_.log, record.block, answer->region, answer->effective_bytes, true);
  const page_block& block = record.built->block();
  const std::uint64_t held = std::max<std::uint64_t>(answer->effective_bytes, block.bytes());
  record.claim.raise_to(held * pool_.declared.devices);
  record.built->registered(*answer, record.claim.commit());
  const bool encloses = answer->effective_address <= block.base() &&
                        answer->effective_address + answer->effective_bytes >= block.base() + block.bytes();
  if (!encloses) return unusable(record);
  return record.dedicated ? built_dedicated(record) : built_pooled(record);
}

void growth::built_pooled(builder& record) noexcept {
  told_waiters told;
  arena& built = *std::exchange(record.built, nullptr);
  bool retired = false;
  bool more = false;
  {
    scoped_lock vector(pool_.vector);
    scoped_lock lock(mutex_);
    builders_.erase(record);
    retired = pool_.closed;
    if (retired) {
      built.add_share();
      pool_.retire(built, retire_reason::closed);
    } else {
      const bool adopted = serve_new(built, told) == 0;
      pool_.publish(built, adopted);
      more = !line_.empty();
    }
    claimed_ = more;
    emit::growth_ended(pool_.log, pool_.id, built.generation(), true, false);
  }
  told.tell();
  if (retired) {
    pool_.dispose(built);
    built.drop_share();
  } else if (pool_.options.arena_reclaim_after_ns != reclaim_never) {
    pool_.reclaiming.watch();  // it may be empty, and the floor is lower for the others now
  }
  if (more) go_on();
  delete &record;
}

void growth::built_dedicated(builder& record) noexcept {
  told_waiters told;
  arena& built = *std::exchange(record.built, nullptr);
  bool retired = true;
  {
    scoped_lock vector(pool_.vector);
    scoped_lock lock(mutex_);
    builders_.erase(record);
    span_waiter* const one = record.waiting.pop_front();
    if (one != nullptr && told.add(*one)) {
      one->granted_ = built.cut_first(one->granules_, one->length_, one->carried_).granted;
      retired = one->granted_ == nullptr;
      if (retired) one->why_ = fail(error_code::corrupt, alloc, built.generation()).error();
    }
    if (retired) {
      built.add_share();
      pool_.retire(built, pool_.closed ? retire_reason::closed : retire_reason::cancelled);
    } else {
      pool_.publish(built, false);
    }
    emit::growth_ended(pool_.log, pool_.id, built.generation(), true, true);
  }
  told.tell();
  if (retired) {
    pool_.dispose(built);
    built.drop_share();
  }
  delete &record;
}

// The backend says that it registered, but not what it was asked to: nobody may use that, and it has to be undone.
void growth::unusable(builder& record) noexcept {
  told_waiters told;
  arena& built = *std::exchange(record.built, nullptr);
  {
    scoped_lock vector(pool_.vector);
    scoped_lock lock(mutex_);
    builders_.erase(record);
    built.add_share();
    pool_.retire(built, retire_reason::failed);
    const error why = fail_with_words(error_code::backend, alloc, "registered less than was asked for").error();
    tell_all(record.waiting, why, told);
    fail_first(record.asked_for, why, told);
    emit::growth_ended(pool_.log, pool_.id, built.generation(), false, record.dedicated);
  }
  told.tell();
  pool_.dispose(built);
  built.drop_share();
  if (!record.dedicated) go_on();
  delete &record;
}

void growth::failed(builder& record, const error& why) noexcept {
  told_waiters told;
  const intrusive_ptr<pool_core> keep = record.pool;
  const bool dedicated = record.dedicated;
  {
    scoped_lock lock(mutex_);
    builders_.erase(record);
    tell_all(record.waiting, why, told);
    fail_first(record.asked_for, why, told);
    emit::growth_ended(pool_.log, pool_.id, 0, false, dedicated);
  }
  record.built->block().map_failed();
  // The claim returns before anybody hears of the failure.
  delete &record;
  told.tell();
  if (!dedicated) go_on();
}

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
