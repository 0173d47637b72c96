#include <sim/kernel/strategies/exhaustive.hpp>

#include <sim/kernel/fiber.hpp>
#include <sim/kernel/strategies/fifo.hpp>
#include <sim/kernel/world.hpp>

namespace holdfast::sim {

namespace {

// Most objects turn out to be shared at once; what a third preemption shows is rare enough to begin again for.
constexpr std::uint32_t learning_bound_max = 2;

}  // namespace

exhaustive_strategy::exhaustive_strategy(std::uint32_t preemptions, bool reduce)
    : preemptions_(preemptions),
      bound_(reduce && preemptions > 1 ? 1 : preemptions),
      reduce_(reduce),
      name_("exhaustive:" + std::to_string(preemptions)) {}

void exhaustive_strategy::begin(world& w) {
  if (reduce_) {
    w.watch_objects(watch_);
    w.order_operations(order_);
  }
  depth_ = 0;
  spent_ = 0;
  cut_now_ = false;
  ++schedules_;
}

std::uint32_t exhaustive_strategy::entry_of(const frame& f, std::uint32_t tried) noexcept {
  if (tried == 0) return f.unforced;
  return tried <= f.unforced ? tried - 1 : tried;
}

std::uint32_t exhaustive_strategy::cost_of(const frame& f, std::uint32_t entry) noexcept {
  if (entry == f.unforced) return 0;
  if (entry >= f.fibers) return f.fibers > 0 ? 1 : 0;
  return f.keeps ? 1 : 0;
}

std::uint32_t exhaustive_strategy::choose(world& w, const choice_point& at) {
  if (depth_ < frames_.size()) {
    const frame& f = frames_[depth_++];
    const std::uint32_t entry = entry_of(f, f.tried);
    if (f.enabled != at.enabled || f.fibers != at.fibers) {
      strayed_ = true;
      return unforced_choice(w, at);
    }
    spent_ = bound_ >= unbounded ? 0 : f.spent + cost_of(f, entry);
    return entry;
  }
  const std::uint32_t unforced = unforced_choice(w, at);
  const bool keeps = at.current != choice_point::none && unforced == at.current;
  const bool settled = reduce_ && (at.calm || !at.searched || (keeps && nobody_could_tell(w)));
  if (reduce_ && !settled && been_here(w, at, keeps)) {
    ++cut_;
    cut_now_ = true;
    w.cut_short();
    return unforced;
  }
  frames_.push_back({at.enabled, at.fibers, unforced, 0, keeps, at.calm, settled, spent_});
  ++depth_;
  return unforced;
}

bool exhaustive_strategy::been_here(const world& w, const choice_point& at, bool keeps) {
  std::uint64_t looks = order_.said();
  for (std::uint32_t i = 0; i < at.fibers; ++i) {
    const fiber& f = w.fiber_at(i);
    looks = (looks ^ (looks >> 29) ^ f.index) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(f.pending);
  }
  const bool costs = keeps && bound_ < unbounded;
  const std::uint32_t current = costs ? w.fiber_at(at.current).index : state_cache::nobody;
  return cache_.known(order_.state(), current, bound_ - spent_,
                      static_cast<std::uint32_t>((looks * 0x9e3779b97f4a7c15u) >> 32));
}

// Operations whose whole effect is on their object. A wait also releases a lock, a post also makes work for others.
bool exhaustive_strategy::nobody_could_tell(const world& w) const noexcept {
  switch (w.pending_operation()) {
    case op_kind::unlock:
    case op_kind::unlock_shared:
    case op_kind::lock:
    case op_kind::try_lock:
    case op_kind::lock_shared:
    case op_kind::load:
    case op_kind::store:
    case op_kind::read_modify_write:
    case op_kind::decrement: return watch_.is_private(w.pending_object());
    default: return false;
  }
}

bool exhaustive_strategy::advance() {
  if (strayed()) return false;
  if (reduce_ && !cut_now_ && cache_.known(order_.state(), state_cache::nobody, 0, 0)) ++cut_;
  if (watch_.learned() && !frames_.empty()) return begin_again();
  // A run that ended early leaves nothing behind its last choice.
  frames_.resize(depth_);
  while (!frames_.empty()) {
    frame& f = frames_.back();
    while (!f.settled && ++f.tried < f.enabled) {
      const std::uint32_t entry = entry_of(f, f.tried);
      if (f.calm && entry >= f.fibers && f.fibers > 0) continue;
      if (f.spent + cost_of(f, entry) <= bound_) return true;
    }
    frames_.pop_back();
  }
  if (bound_ == preemptions_) return false;
  bound_ = bound_ < learning_bound_max ? bound_ + 1 : preemptions_;
  return begin_again();
}

bool exhaustive_strategy::begin_again() noexcept {
  frames_.clear();
  cache_.clear();
  schedules_ = 0;
  cut_ = 0;
  ++restarts_;
  return true;
}

std::vector<std::uint32_t> exhaustive_strategy::forced() const {
  std::vector<std::uint32_t> out;
  out.reserve(frames_.size());
  for (const frame& f : frames_) out.push_back(entry_of(f, f.tried));
  return out;
}

}  // namespace holdfast::sim
