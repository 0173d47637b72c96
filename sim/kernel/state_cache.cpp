#include <sim/kernel/state_cache.hpp>

#include <utility>

namespace holdfast::sim {

namespace {

constexpr std::size_t entries_first = std::size_t{1} << 12;

// Of a state as such, and of a state with its current fiber; never 0, which is an empty entry.
std::uint64_t key_of(std::uint64_t state) noexcept { return state | 1; }
std::uint64_t key_of(std::uint64_t state, std::uint32_t current) noexcept {
  std::uint64_t x = (state + current + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  return (x ^ (x >> 32)) | 1;
}

}  // namespace

void state_cache::clear() noexcept {
  entries_.assign(entries_.size(), entry{});
  used_ = 0;
}

state_cache::entry* state_cache::find(std::uint64_t key) noexcept {
  if (entries_.empty()) return nullptr;
  const std::size_t mask = entries_.size() - 1;
  for (std::size_t i = (key >> 20) & mask;; i = (i + 1) & mask) {
    if (entries_[i].key == key) return &entries_[i];
    if (entries_[i].key == 0) return nullptr;
  }
}

state_cache::entry* state_cache::at(std::uint64_t key, std::uint32_t looks) {
  if (entry* const known = find(key)) return known;
  if (2 * (used_ + 1) > entries_.size()) {
    if (2 * entries_.size() * sizeof(entry) > bytes_max_) return nullptr;
    grow();
  }
  const std::size_t mask = entries_.size() - 1;
  std::size_t i = (key >> 20) & mask;
  while (entries_[i].key != 0) i = (i + 1) & mask;
  entries_[i] = {key, looks, 0};
  ++used_;
  return &entries_[i];
}

void state_cache::grow() {
  std::vector<entry> old =
      std::exchange(entries_, std::vector<entry>(entries_.empty() ? entries_first : 2 * entries_.size()));
  const std::size_t mask = entries_.size() - 1;
  for (const entry& e : old) {
    if (e.key == 0) continue;
    std::size_t i = (e.key >> 20) & mask;
    while (entries_[i].key != 0) i = (i + 1) & mask;
    entries_[i] = e;
  }
}

bool state_cache::known(std::uint64_t state, std::uint32_t current, std::uint32_t left, std::uint32_t looks) {
  // `left` is kept plus one: 0 is an entry that was not searched.
  ++left;
  const std::uint64_t same = key_of(state, current);
  if (const entry* const any = find(key_of(state))) {
    if (any->looks != looks) contradicted_ = true;
    if (any->left > left) return true;
    if (const entry* const e = find(same); e != nullptr && e->left >= left) return true;
    if (const entry* const e = find(key_of(state, nobody)); e != nullptr && e->left >= left) return true;
  }
  if (entry* const e = at(key_of(state), looks); e != nullptr && e->left < left) e->left = left;
  if (entry* const e = at(same, looks); e != nullptr && e->left < left) e->left = left;
  return false;
}

}  // namespace holdfast::sim
