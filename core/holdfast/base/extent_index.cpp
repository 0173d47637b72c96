#include <holdfast/platform/abi.hpp>

#include <holdfast/base/extent_index.hpp>

#include <holdfast/platform/stop_process.hpp>

#include <bit>

namespace holdfast::inline HOLDFAST_ABI {

namespace {

__extension__ using wide = unsigned __int128;

// One free range in the digest: a sum of these does not depend on order, and a range leaves it as it entered.
std::uint64_t mixed(std::uint32_t offset, std::uint32_t granules) noexcept {
  const std::uint64_t key = (std::uint64_t{offset} << 32 | granules) ^ 0x9e3779b97f4a7c15;
  const wide product = static_cast<wide>(key) * 0xd6e8feb86659fd93;
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
  initial_.offset_ = 0;
  initial_.granules_ = granules;
  insert(initial_);
}

std::uint32_t extent_index::bin_of(std::uint32_t granules) noexcept {
  if (granules < exact_bins) return granules;
  const std::uint32_t power = static_cast<std::uint32_t>(std::bit_width(granules)) - 1;
  return exact_bins + (power - 8) * 4 + ((granules >> (power - 2)) & 3);
}

bool extent_index::before(const extent_node& a, const extent_node& b) noexcept {
  return a.granules_ != b.granules_ ? a.granules_ < b.granules_ : a.offset_ < b.offset_;
}

// ---- The trees of free ranges: treaps with links to the parent --------------------------------------------------

void extent_index::insert(extent_node& node) noexcept {
  node.state_ = extent_node::state::free;
  ++free_extents_;
  free_granules_ += node.granules_;
  digest_ += mixed(node.offset_, node.granules_);

  const std::uint32_t bin = bin_of(node.granules_);
  node.priority_ = priority_of(node.offset_);
  extent_node* parent = nullptr;
  extent_node** link = &roots_[bin];
  if (*link == nullptr) nonempty_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  while (*link != nullptr && (*link)->priority_ >= node.priority_) {
    parent = *link;
    link = before(node, *parent) ? &parent->left_ : &parent->right_;
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
    if (before(*rest, node)) {
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
  free_granules_ -= node.granules_;
  digest_ -= mixed(node.offset_, node.granules_);

  extent_node* parent = node.parent_;
  extent_node* left = node.left_;
  extent_node* right = node.right_;
  std::uint32_t bin = 0;
  extent_node** link = nullptr;
  if (parent == nullptr) {
    bin = bin_of(node.granules_);
    link = &roots_[bin];
  } else {
    link = parent->left_ == &node ? &parent->left_ : &parent->right_;
  }
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
    nonempty_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
}

void extent_index::resize(extent_node& node, std::uint32_t offset, std::uint32_t granules) noexcept {
  const std::uint32_t from = bin_of(node.granules_);
  const std::uint32_t to = bin_of(granules);
  // Alone in its bin, and staying there or moving to an empty one: the usual case of a warm arena. Its priority may
  // stay what it was, since nothing was or will be ordered by the offset.
  const bool alone = roots_[from] == &node && node.left_ == nullptr && node.right_ == nullptr;
  if (!alone || (from != to && roots_[to] != nullptr)) {
    remove(node);
    node.offset_ = offset;
    node.granules_ = granules;
    insert(node);
    return;
  }
  digest_ += mixed(offset, granules) - mixed(node.offset_, node.granules_);
  free_granules_ += granules;
  free_granules_ -= node.granules_;
  node.offset_ = offset;
  node.granules_ = granules;
  if (from == to) return;
  roots_[from] = nullptr;
  nonempty_[from / 64] &= ~(std::uint64_t{1} << (from % 64));
  roots_[to] = &node;
  nonempty_[to / 64] |= std::uint64_t{1} << (to % 64);
}

extent_node* extent_index::find(std::uint32_t granules) const noexcept {
  std::uint32_t bin = bin_of(granules);
  if (bin >= exact_bins) {
    // A bin of several sizes: the smallest that is large enough, if it has one.
    extent_node* best = nullptr;
    for (extent_node* at = roots_[bin]; at != nullptr;) {
      if (at->granules_ >= granules) {
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
    const extent_node* largest =
        roots_[word * 64 + 63 - static_cast<std::uint32_t>(std::countl_zero(nonempty_[word]))];
    while (largest->right_ != nullptr) largest = largest->right_;
    return largest->granules_;
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
  node.offset_ = found->offset_;
  node.granules_ = granules;
  node.state_ = extent_node::state::granted;
  node.previous_ = found->previous_;
  (node.previous_ != nullptr ? node.previous_->next_ : first_) = &node;
  ++granted_extents_;
  extent_node* spare = nullptr;
  if (found->granules_ == granules) {
    remove(*found);
    node.next_ = found->next_;
    if (node.next_ != nullptr) node.next_->previous_ = &node;
    give_up(*found, spare);
  } else {
    node.next_ = found;
    found->previous_ = &node;
    resize(*found, found->offset_ + granules, found->granules_ - granules);
  }
  return {true, spare};
}

extent_node* extent_index::put(extent_node& node) noexcept {
  if (node.state_ != extent_node::state::granted) platform::stop_process("an extent was given back that is not granted");
  --granted_extents_;
  extent_node* const below =
      node.previous_ != nullptr && node.previous_->state_ == extent_node::state::free ? node.previous_ : nullptr;
  extent_node* const above =
      node.next_ != nullptr && node.next_->state_ == extent_node::state::free ? node.next_ : nullptr;
  extent_node* spare = nullptr;
  if (below == nullptr && above == nullptr) {
    insert(node);
    return nullptr;
  }
  if (below == nullptr) {
    unlink(node);
    resize(*above, node.offset_, node.granules_ + above->granules_);
  } else {
    std::uint32_t granules = below->granules_ + node.granules_;
    unlink(node);
    if (above != nullptr) {
      granules += above->granules_;
      remove(*above);
      unlink(*above);
      give_up(*above, spare);
    }
    resize(*below, below->offset_, granules);
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
      if (at->state_ != extent_node::state::free || bin_of(at->granules_) != bin) return broken;
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
      if (last != nullptr && !before(*last, *at)) return broken;
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
    if (at->previous_ != previous || at->offset_ != offset || at->granules_ == 0) return false;
    const bool is_free = at->state_ == extent_node::state::free;
    if (!is_free && at->state_ != extent_node::state::granted) return false;
    if (is_free) {
      if (previous != nullptr && previous->state_ == extent_node::state::free) return false;
      ++free_count;
      free_sum += at->granules_;
      digest += mixed(at->offset_, at->granules_);
    } else {
      ++granted_count;
    }
    offset += at->granules_;
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
