#include <holdfast/platform/abi.hpp>

#include <holdfast/base/quarantine.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/platform/stop_process.hpp>
#include <holdfast/telemetry/emit.hpp>

#include <iterator>
#include <limits>

namespace holdfast::inline HOLDFAST_ABI {

namespace {

constexpr std::uint64_t last_stamp = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint32_t bit_of(evidence_kind kind) noexcept { return 1u << static_cast<unsigned>(kind); }

}  // namespace

std::string_view name_of(quarantine_kind kind) noexcept {
  static constexpr std::string_view names[] = {"arena", "region", "span", "allocation", "prefix", "chunk"};
  static_assert(std::size(names) == quarantine_kinds);
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name_of(quarantine_reason reason) noexcept {
  static constexpr std::string_view names[] = {
      "unmap_unknown",       "unmap_timeout",        "unmap_refused",     "not_submitted",    "indeterminate",
      "peer_dead",           "owner_dropped",        "abandoned_request", "enqueue_rejected", "allocator_refused",
      "partial_release",     "partially_unmapped",   "decommit_failed",   "state_corrupt",    "device_lost",
      "descriptor_mismatch", "publication_rejected", "release_retained"};
  static_assert(std::size(names) == quarantine_reasons);
  return names[static_cast<std::size_t>(reason)];
}

std::string_view name_of(evidence_kind kind) noexcept {
  static constexpr std::string_view names[] = {"none", "answer", "completion", "witness", "fence", "termination"};
  return names[static_cast<std::size_t>(kind)];
}

// ---- Evidence ---------------------------------------------------------------------------------------------------

std::uint32_t quarantine_terms::accepts() const noexcept {
  return (answer ? bit_of(evidence_kind::answer) : 0) | (operation != 0 ? bit_of(evidence_kind::completion) : 0) |
         (epoch != 0 ? bit_of(evidence_kind::witness) : 0) | (fence ? bit_of(evidence_kind::fence) : 0) |
         (context != 0 ? bit_of(evidence_kind::termination) : 0);
}

evidence& evidence::operator=(evidence&& other) noexcept {
  kind_ = std::exchange(other.kind_, evidence_kind::none);
  about_ = other.about_;
  gets_fenced_ = other.gets_fenced_;
  how_ = other.how_;
  subject_ = std::exchange(other.subject_, 0);
  scope_ = other.scope_;
  quarantine_ = other.quarantine_;
  who_ = other.who_;
  return *this;
}

evidence evidence::answered(quarantine_kind kind, std::uint64_t id, bool confirmed) noexcept {
  if (!confirmed) return evidence();
  evidence made(evidence_kind::answer, id);
  made.about_ = kind;
  return made;
}

evidence evidence::completed(std::uint64_t operation) noexcept {
  if (operation == 0) return evidence();
  return evidence(evidence_kind::completion, operation);
}

evidence evidence::transport_gone(const witness& gone) noexcept {
  if (gone.epoch() == 0) return evidence();
  evidence made(evidence_kind::witness, gone.epoch());
  made.scope_ = gone.incarnation();
  made.gets_fenced_ = gone.fences_gets();
  return made;
}

evidence evidence::fences_passed(fence_request request, bool all_completed) noexcept {
  if (!all_completed || request.stamp_ == 0) return evidence();
  evidence made(evidence_kind::fence, request.stamp_);
  made.about_ = request.kind_;
  made.scope_ = request.id_;
  made.quarantine_ = request.quarantine_;
  return made;
}

evidence evidence::terminated(std::uint64_t context, termination how, const char* who, bool succeeded) noexcept {
  if (!succeeded || context == 0) return evidence();
  evidence made(evidence_kind::termination, context);
  made.how_ = how;
  made.who_ = who;
  return made;
}

bool evidence::covers(const quarantine_view& entry) const noexcept {
  const quarantine_terms& terms = entry.terms;
  if ((terms.accepts() & bit_of(kind_)) == 0) return false;
  switch (kind_) {
    case evidence_kind::none: return false;
    case evidence_kind::answer: return about_ == terms.kind && subject_ == terms.id;
    case evidence_kind::completion: return subject_ == terms.operation;
    case evidence_kind::witness:
      return subject_ == terms.epoch && scope_ == terms.incarnation && (gets_fenced_ || !terms.needs_gets_fenced);
    case evidence_kind::fence:
      // A fence that was recorded before the entry came in may lie before work that reaches it.
      return quarantine_ == entry.quarantine && about_ == terms.kind && scope_ == terms.id && subject_ > entry.stamp;
    case evidence_kind::termination: return subject_ == terms.context;
  }
  return false;
}

// ---- The quarantine ---------------------------------------------------------------------------------------------

quarantine_entry::~quarantine_entry() {
  if (state_ == state::inside) platform::stop_process("an entry was destroyed inside its quarantine");
}

void quarantine::wide_sum::add(std::uint64_t bytes) noexcept {
  ++entries;
  low += bytes;
  if (low < bytes) ++high;
}

void quarantine::wide_sum::subtract(std::uint64_t bytes) noexcept {
  --entries;
  if (low < bytes) --high;
  low -= bytes;
}

quarantine_sum quarantine::wide_sum::value() const noexcept {
  return {entries, high == 0 ? low : std::numeric_limits<std::uint64_t>::max()};
}

quarantine::quarantine(std::uint64_t id, event_log& log, const lock_class& rank, std::uint64_t first_stamp) noexcept
    : id_(id), log_(log), mutex_(rank), stamp_(first_stamp - 1) {
  if (first_stamp == 0) platform::stop_process("stamps of a quarantine begin above 0");
}

quarantine::~quarantine() {
  quarantine_chain leaked;
  abandon_all(leaked);
  while (leaked.pop_front() != nullptr) {
  }
}

bool quarantine::admit(quarantine_entry& entry, const quarantine_terms& terms, platform::time_point now) noexcept {
  scoped_lock lock(mutex_);
  if (is_inside(entry)) {
    change_reason(entry, terms.reason);
    return false;
  }
  if (entry.state_ == quarantine_entry::state::abandoned) return false;
  entry.view_ = {terms, id_, now, next_stamp()};
  list_.push_back(entry);
  entry.state_ = quarantine_entry::state::inside;
  entry.home_ = this;
  inside_.add(terms.bytes);
  by_kind_[static_cast<std::size_t>(terms.kind)].add(terms.bytes);
  by_reason_[static_cast<std::size_t>(terms.reason)].add(terms.bytes);
  emit::quarantine_entered(log_, id_, terms.kind, terms.id, terms.bytes, terms.reason, terms.accepts());
  emit::quarantine_awaits(log_, id_, terms.kind, terms.id, terms.operation, terms.epoch, terms.context);
  return true;
}

bool quarantine::restate(quarantine_entry& entry, quarantine_reason reason) noexcept {
  scoped_lock lock(mutex_);
  if (!is_inside(entry)) return false;
  change_reason(entry, reason);
  return true;
}

bool quarantine::discharge(quarantine_entry& entry, const evidence& shown) noexcept {
  scoped_lock lock(mutex_);
  if (!is_inside(entry)) return false;
  const quarantine_terms& terms = entry.view_.terms;
  if (!shown.covers(entry.view_)) {
    emit::quarantine_evidence_refused(log_, id_, terms.kind, terms.id, shown.kind(), shown.subject());
    return false;
  }
  take_out(entry, shown);
  return true;
}

std::size_t quarantine::discharge_all(const evidence& shown, quarantine_chain& out) noexcept {
  std::size_t taken = 0;
  scoped_lock lock(mutex_);
  for (auto at = list_.begin(); at != list_.end();) {
    quarantine_entry& entry = *at;
    ++at;
    if (!shown.covers(entry.view_)) continue;
    take_out(entry, shown);
    out.push_back(entry);
    ++taken;
  }
  return taken;
}

bool quarantine::abandon(quarantine_entry& entry) noexcept {
  scoped_lock lock(mutex_);
  if (!is_inside(entry)) return false;
  const quarantine_terms& terms = entry.view_.terms;
  emit::quarantine_given_up(log_, id_, terms.kind, terms.id, terms.bytes);
  give_up(entry);
  list_.erase(entry);
  return true;
}

void quarantine::give_up(quarantine_entry& entry) noexcept {
  entry.state_ = quarantine_entry::state::abandoned;
  abandoned_.add(entry.view_.terms.bytes);
  uncount(entry.view_.terms);
}

std::size_t quarantine::abandon_all(quarantine_chain& out) noexcept {
  scoped_lock lock(mutex_);
  const std::size_t given_up = list_.size();
  if (given_up == 0) return 0;
  emit::quarantine_abandoned(log_, id_, given_up, inside_.value().bytes);
  for (quarantine_entry& entry : list_) give_up(entry);
  out.splice_back(list_);
  return given_up;
}

std::optional<fence_request> quarantine::begin_fence(quarantine_entry& entry) noexcept {
  scoped_lock lock(mutex_);
  if (!is_inside(entry) || !entry.view_.terms.fence || stamp_ == last_stamp) return std::nullopt;
  const quarantine_terms& terms = entry.view_.terms;
  const std::uint64_t stamp = next_stamp();
  emit::quarantine_fence_begun(log_, id_, terms.kind, terms.id, stamp);
  return fence_request(id_, terms.kind, terms.id, stamp);
}

bool quarantine::holds(const quarantine_entry& entry) const noexcept {
  scoped_lock lock(mutex_);
  return is_inside(entry);
}

quarantine_totals quarantine::totals() const noexcept {
  quarantine_totals sums;
  scoped_lock lock(mutex_);
  sums.inside = inside_.value();
  for (std::size_t i = 0; i < quarantine_kinds; ++i) sums.by_kind[i] = by_kind_[i].value();
  for (std::size_t i = 0; i < quarantine_reasons; ++i) sums.by_reason[i] = by_reason_[i].value();
  sums.abandoned = abandoned_.value();
  return sums;
}

std::size_t quarantine::snapshot_into(std::span<quarantine_view> into) const noexcept {
  scoped_lock lock(mutex_);
  std::size_t written = 0;
  for (quarantine_entry& entry : list_) {
    if (written == into.size()) break;
    into[written++] = entry.view_;
  }
  return list_.size();
}

bool quarantine::is_inside(const quarantine_entry& entry) const noexcept {
  if (entry.state_ != quarantine_entry::state::inside) return false;
  if (entry.home_ != this) platform::stop_process("an entry of one quarantine was brought to another");
  return true;
}

// Saturates: an entry with the last stamp is never proven by a fence, since no later one can be begun.
std::uint64_t quarantine::next_stamp() noexcept {
  if (stamp_ != last_stamp) ++stamp_;
  return stamp_;
}

void quarantine::change_reason(quarantine_entry& entry, quarantine_reason reason) noexcept {
  quarantine_terms& terms = entry.view_.terms;
  if (terms.reason == reason) return;
  by_reason_[static_cast<std::size_t>(terms.reason)].subtract(terms.bytes);
  by_reason_[static_cast<std::size_t>(reason)].add(terms.bytes);
  terms.reason = reason;
  emit::quarantine_restated(log_, id_, terms.kind, terms.id, reason);
}

void quarantine::take_out(quarantine_entry& entry, const evidence& shown) noexcept {
  const quarantine_terms& terms = entry.view_.terms;
  list_.erase(entry);
  entry.state_ = quarantine_entry::state::outside;
  uncount(terms);
  emit::quarantine_left(log_, id_, terms.kind, terms.id, terms.bytes, shown.kind(), shown.subject());
}

void quarantine::uncount(const quarantine_terms& terms) noexcept {
  inside_.subtract(terms.bytes);
  by_kind_[static_cast<std::size_t>(terms.kind)].subtract(terms.bytes);
  by_reason_[static_cast<std::size_t>(terms.reason)].subtract(terms.bytes);
}

}  // namespace holdfast::inline HOLDFAST_ABI
