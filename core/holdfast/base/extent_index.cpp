#include <holdfast/platform/abi.hpp>

#include <holdfast/base/extent_index.hpp>

#include <holdfast/platform/stop_process.hpp>

#include <bit>

namespace holdfast::inline HOLDFAST_ABI {

namespace {

__extension__ using wide = unsigned __int128;

constexpr std::uint64_t key_of(std::uint32_t offset, std::uint32_t granules) noexcept {
  return std::uint64_t{granules} << 32 | offset;
}

// One free range in the digest: a sum of these does not depend on order, and a range leaves it as it entered.
std::uint64_t mixed(std::uint64_t key) noexcept {
  const wide product = static_cast<wide>(key ^ 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Place of a node in the heap order of its tree: from the offset, so that a run does not depend on addresses.
std::uint32_t priority_of(std::uint32_t offset) noexcept {
  std::uint32_t x = offset * 0x9e3779b1u;
  x ^= x >> 15;
  return x * 0x85ebca6bu;
}

}  // namespace

extent_index::extent_index(std::uint32_t granules) noexcept : first_(&initial_), granules_(granules) {
  if (granules == 0) platform::stop_process("an extent index of no granules");
  initial_.key_ = key_of(0, granules);
  insert(initial_);
}

std::uint16_t extent_index::bin_of(std::uint32_t granules) noexcept {
  if (granules < exact_bins) return static_cast<std::uint16_t>(granules);
  const std::uint32_t power = static_cast<std::uint32_t>(std::bit_width(granules)) - 1;
  return static_cast<std::uint16_t>(exact_bins + (power - 8) * 4 + ((granules >> (power - 2)) & 3));
}

// ---- The trees of free ranges: treaps with links to the parent --------------------------------------------------

void extent_index::insert(extent_node& node) noexcept {
  node.state_ = extent_node::state::free;
  ++free_extents_;
  free_granules_ += node.granules();
  digest_ += mixed(node.key_);

  const std::uint32_t bin = node.bin_ = bin_of(node.granules());
  node.priority_ = priority_of(node.offset());
  extent_node* parent = nullptr;
  extent_node** link = &roots_[bin];
  if (*link == nullptr) nonempty_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  while (*link != nullptr && (*link)->priority_ >= node.priority_) {
    parent = *link;
    link = node.key_ < parent->key_ ? &parent->left_ : &parent->right_;
  }
  // The subtree that stood here is cut along the new key into what belongs left and right of it.
  extent_node* rest = *link;
  *link = &node;
  node.parent_ = parent;
  extent_node* left_parent = &node;
  extent_node* right_parent = &node;
  extent_node** left = &node.left_;
  extent_node** right = &node.right_;
  while (rest != nullptr) {
    if (rest->key_ < node.key_) {
      *left = rest;
      rest->parent_ = left_parent;
      left_parent = rest;
      left = &rest->right_;
      rest = rest->right_;
    } else {
      *right = rest;
      rest->parent_ = right_parent;
      right_parent = rest;
      right = &rest->left_;
      rest = rest->left_;
    }
  }
  *left = nullptr;
  *right = nullptr;
}

void extent_index::remove(extent_node& node) noexcept {
  --free_extents_;
  free_granules_ -= node.granules();
  digest_ -= mixed(node.key_);

  extent_node* parent = node.parent_;
  extent_node* left = node.left_;
  extent_node* right = node.right_;
  extent_node** link = &roots_[node.bin_];
  if (parent != nullptr) link = parent->left_ == &node ? &parent->left_ : &parent->right_;
  while (left != nullptr && right != nullptr) {
    if (left->priority_ >= right->priority_) {
      *link = left;
      left->parent_ = parent;
      parent = left;
      link = &left->right_;
      left = left->right_;
    } else {
      *link = right;
      right->parent_ = parent;
      parent = right;
      link = &right->left_;
      right = right->left_;
    }
  }
  extent_node* const rest = left != nullptr ? left : right;
  *link = rest;
  if (rest != nullptr)
    rest->parent_ = parent;
  else if (parent == nullptr)
    nonempty_[node.bin_ / 64] &= ~(std::uint64_t{1} << (node.bin_ % 64));
}

[[gnu::noinline]] void extent_index::rehang(extent_node& node, std::uint64_t key) noexcept {
  remove(node);
  node.key_ = key;
  insert(node);
}

inline void extent_index::resize(extent_node& node, std::uint64_t key) noexcept {
  const std::uint32_t from = node.bin_;
  const std::uint16_t to = bin_of(static_cast<std::uint32_t>(key >> 32));
  // Alone in its bin, and staying there or moving to an empty one: the usual case of a warm arena. Its priority may
  // stay what it was, since nothing was or will be ordered by the offset.
  if (node.parent_ != nullptr || node.left_ != nullptr || node.right_ != nullptr ||
      (from != to && roots_[to] != nullptr))
    return rehang(node, key);
  digest_ += mixed(key) - mixed(node.key_);
  free_granules_ += (key >> 32) - node.granules();
  node.key_ = key;
  if (from == to) return;
  roots_[from] = nullptr;
  node.bin_ = to;
  roots_[to] = &node;
  // Neighboring bins mostly share a word, which is written once then: the next search waits for it.
  const std::uint64_t left = std::uint64_t{1} << (from % 64);
  const std::uint64_t entered = std::uint64_t{1} << (to % 64);
  if (from / 64 == to / 64) {
    nonempty_[from / 64] ^= left | entered;
  } else {
    nonempty_[from / 64] ^= left;
    nonempty_[to / 64] |= entered;
  }
}

extent_node* extent_index::find(std::uint32_t granules) const noexcept {
  std::uint32_t bin = bin_of(granules);
  if (bin >= exact_bins) {
    // A bin of several sizes: the smallest that is large enough, if it has one.
    extent_node* best = nullptr;
    for (extent_node* at = roots_[bin]; at != nullptr;) {
      if (at->granules() >= granules) {
        best = at;
        at = at->left_;
      } else {
        at = at->right_;
      }
    }
    if (best != nullptr) return best;
    if (++bin == bins) return nullptr;
  }
  std::uint32_t word = bin / 64;
  std::uint64_t bits = nonempty_[word] & (~std::uint64_t{0} << (bin % 64));
  while (bits == 0) {
    if (++word == words) return nullptr;
    bits = nonempty_[word];
  }
  extent_node* found = roots_[word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits))];
  while (found->left_ != nullptr) found = found->left_;
  return found;
}

std::uint32_t extent_index::largest_free() const noexcept {
  for (std::uint32_t word = words; word-- > 0;) {
    if (nonempty_[word] == 0) continue;
    const extent_node* largest = roots_[word * 64 + 63 - static_cast<std::uint32_t>(std::countl_zero(nonempty_[word]))];
    while (largest->right_ != nullptr) largest = largest->right_;
    return largest->granules();
  }
  return 0;
}

// ---- Extents in order of address --------------------------------------------------------------------------------

void extent_index::unlink(extent_node& node) noexcept {
  (node.previous_ != nullptr ? node.previous_->next_ : first_) = node.next_;
  if (node.next_ != nullptr) node.next_->previous_ = node.previous_;
}

void extent_index::give_up(extent_node& node, extent_node*& chain) noexcept {
  node.state_ = extent_node::state::spare;
  if (&node == &initial_) return;
  node.left_ = chain;
  chain = &node;
}

extent_index::taken extent_index::take(std::uint32_t granules, extent_node& node) noexcept {
  if (node.state_ != extent_node::state::spare) platform::stop_process("an extent in use was to be granted again");
  extent_node* const found = granules == 0 ? nullptr : find(granules);
  if (found == nullptr) return {false, nullptr};
  node.key_ = key_of(found->offset(), granules);
  node.state_ = extent_node::state::granted;
  node.previous_ = found->previous_;
  (node.previous_ != nullptr ? node.previous_->next_ : first_) = &node;
  ++granted_extents_;
  extent_node* spare = nullptr;
  if (found->granules() == granules) {
    remove(*found);
    node.next_ = found->next_;
    if (node.next_ != nullptr) node.next_->previous_ = &node;
    give_up(*found, spare);
  } else {
    node.next_ = found;
    found->previous_ = &node;
    resize(*found, key_of(found->offset() + granules, found->granules() - granules));
  }
  return {true, spare};
}

extent_node* extent_index::put(extent_node& node) noexcept {
  if (node.state_ != extent_node::state::granted)
    platform::stop_process("an extent was given back that is not granted");
  --granted_extents_;
  extent_node* const below = node.previous_;
  extent_node* const above = node.next_;
  const bool join_below = below != nullptr && below->state_ == extent_node::state::free;
  const bool join_above = above != nullptr && above->state_ == extent_node::state::free;
  if (!join_below && !join_above) {
    insert(node);
    return nullptr;
  }
  extent_node* spare = nullptr;
  unlink(node);
  if (!join_below) {
    resize(*above, key_of(node.offset(), node.granules() + above->granules()));
  } else {
    std::uint32_t granules = below->granules() + node.granules();
    if (join_above) {
      granules += above->granules();
      remove(*above);
      unlink(*above);
      give_up(*above, spare);
    }
    resize(*below, key_of(below->offset(), granules));
  }
  give_up(node, spare);
  return spare;
}

// ---- Checking ---------------------------------------------------------------------------------------------------

std::uint32_t extent_index::count_ordered(const extent_node* at, const extent_node* parent,
                                          std::uint32_t bin) const noexcept {
  std::uint32_t count = 0;
  // In order, by the links to the parent: a tree of any shape needs no stack.
  const extent_node* last = nullptr;
  const extent_node* came_from = parent;
  while (at != parent) {
    if (came_from == at->parent_) {
      if (at->state_ != extent_node::state::free || at->bin_ != bin || bin_of(at->granules()) != bin) return broken;
      if (at->left_ != nullptr && (at->left_->parent_ != at || at->left_->priority_ > at->priority_)) return broken;
      if (at->right_ != nullptr && (at->right_->parent_ != at || at->right_->priority_ > at->priority_)) return broken;
      if (at->left_ != nullptr) {
        came_from = at;
        at = at->left_;
        continue;
      }
      came_from = nullptr;
    }
    if (came_from == at->left_) {
      if (last != nullptr && last->key_ >= at->key_) return broken;
      last = at;
      if (++count > free_extents_) return broken;
      if (at->right_ != nullptr) {
        came_from = at;
        at = at->right_;
        continue;
      }
    }
    came_from = at;
    at = at->parent_;
  }
  return count;
}

bool extent_index::consistent() const noexcept {
  std::uint64_t offset = 0;
  std::uint64_t free_sum = 0;
  std::uint64_t digest = 0;
  std::uint32_t free_count = 0;
  std::uint32_t granted_count = 0;
  const extent_node* previous = nullptr;
  for (const extent_node* at = first_; at != nullptr; at = at->next_) {
    if (at->previous_ != previous || at->offset() != offset || at->granules() == 0) return false;
    const bool is_free = at->state_ == extent_node::state::free;
    if (!is_free && at->state_ != extent_node::state::granted) return false;
    if (is_free) {
      if (previous != nullptr && previous->state_ == extent_node::state::free) return false;
      ++free_count;
      free_sum += at->granules();
      digest += mixed(at->key_);
    } else {
      ++granted_count;
    }
    offset += at->granules();
    if (offset > granules_) return false;
    previous = at;
  }
  if (offset != granules_ || free_count != free_extents_ || granted_count != granted_extents_ ||
      free_sum != free_granules_ || digest != digest_)
    return false;
  std::uint32_t in_trees = 0;
  for (std::uint32_t bin = 0; bin < bins; ++bin) {
    const extent_node* const root = roots_[bin];
    if ((root != nullptr) != ((nonempty_[bin / 64] >> (bin % 64) & 1) != 0)) return false;
    if (root == nullptr) continue;
    if (root->parent_ != nullptr) return false;
    const std::uint32_t count = count_ordered(root, nullptr, bin);
    if (count == broken) return false;
    in_trees += count;
  }
  return in_trees == free_extents_;
}

}  // namespace holdfast::inline HOLDFAST_ABI
