#include <sim/kernel/strategies/pct.hpp>

#include <sim/kernel/fiber.hpp>

#include <algorithm>
#include <cstdio>

namespace holdfast::sim {

namespace {
constexpr std::uint64_t stream_name = random_stream::hash_of("strategy");
constexpr std::uint32_t length_least = 32;
constexpr std::uint32_t lengths = 10;  // each twice the one before
}  // namespace

std::string_view pct_strategy::name() const noexcept {
  const int size = std::snprintf(name_, sizeof name_, "pct:%u,%u", depth_, length_);
  return {name_, static_cast<std::size_t>(size)};
}

void pct_strategy::begin(world& w) {
  stream_ = random_stream::derive_hashed(w.settings().seed, stream_name);
  // Drawn even if given, so that giving what was drawn repeats the run.
  const std::uint32_t drawn = length_least << stream_.below(lengths);
  length_ = given_.value_or(drawn);
  choices_ = 0;
  next_change_ = 0;
  changes_.clear();
  for (std::uint32_t i = 1; i < depth_; ++i)
    changes_.push_back({1 + static_cast<std::uint32_t>(stream_.below(length_)), changed_base + i});
  std::ranges::sort(changes_, [](const change& a, const change& b) {
    return a.choice != b.choice ? a.choice < b.choice : a.to < b.to;
  });
  fibers_.clear();
  time_ = draw();
  lowest_ = changed_base;
}

pct_strategy::priority& pct_strategy::priority_of(std::uint32_t fiber) {
  if (fiber >= fibers_.size()) fibers_.resize(fiber + 1, 0);
  priority& p = fibers_[fiber];
  if (p == 0) p = draw();
  return p;
}

// Of equal ones the oldest; events come last.
pct_strategy::priority& pct_strategy::highest(world& w, const choice_point& at, std::uint32_t& entry) {
  std::uint32_t best = 0;  // number of the fiber
  priority best_priority = 0;
  for (std::uint32_t i = 0; i < at.fibers; ++i) {
    const std::uint32_t number = w.fiber_at(i).index;
    const priority p = priority_of(number);
    if (p <= best_priority) continue;
    best = number;
    best_priority = p;
    entry = i;
  }
  if (at.enabled > at.fibers && !(at.calm && at.fibers > 0) && time_ > best_priority) {
    entry = at.fibers;
    return time_;
  }
  return fibers_[best];
}

std::uint32_t pct_strategy::choose(world& w, const choice_point& at) {
  ++choices_;
  if (at.current != choice_point::none) {
    const fiber& current = *w.running();
    if (current.pending == op_kind::yield) priority_of(current.index) = --lowest_;
  }
  std::uint32_t entry = 0;
  for (; next_change_ < changes_.size() && changes_[next_change_].choice == choices_; ++next_change_)
    highest(w, at, entry) = changes_[next_change_].to;
  if (choices_ > length_ && (choices_ - 1) % length_ == 0) highest(w, at, entry) = --lowest_;
  highest(w, at, entry);
  if (entry < at.fibers || at.enabled == at.fibers + 1) return entry;
  // Several events due at one instant.
  return at.fibers + static_cast<std::uint32_t>(stream_.below(at.enabled - at.fibers));
}

}  // namespace holdfast::sim
