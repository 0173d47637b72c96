// The free ranges of one piece of memory: exact sizes, best fit, coalescing, and no allocation.
//
// Why this exists: an arena is cut into granules on every allocation. A range must never be granted twice, "it fits
// but is not found" must be impossible, and giving back must not be able to fail.
//
// How         Every extent, granted or free, is one `extent_node`, linked with its neighbors in order of address; so
//             coalescing looks at two nodes. Free ones also hang in a bin for their size: one bin for each size below
//             256 granules, four for each power of two above, every bin a treap by (size, offset). A bitmap finds the
//             bin: expected time grows with the logarithm of the extents in one bin.
// Ownership   Nodes are the caller's, usually part of its span objects, and belong to the index while they name a
//             granted or free range. `take` makes the node it is given the granted range. `take` and `put` answer the
//             nodes that the index needs no more: a chain of at most one and at most two. Thus there are as many
//             nodes in use as extents exist, and only a split costs one. The first free range uses a node of the
//             index itself, which it never gives away.
// Units       Granules, 32 bits; the caller knows their bytes. Offsets count from the beginning of the range.
// Threading   Not synchronized: the owner's lock guards it.
// Failure     `take` finds nothing: unchanged. Giving back what is not granted stops the process.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI {

/// One extent. Carried by the caller's objects; the index keeps its address.
class extent_node {
 public:
  extent_node() noexcept = default;
  extent_node(const extent_node&) = delete;
  extent_node& operator=(const extent_node&) = delete;

  std::uint32_t offset() const noexcept { return static_cast<std::uint32_t>(key_); }
  std::uint32_t granules() const noexcept { return static_cast<std::uint32_t>(key_ >> 32); }
  /// Next node of a chain of spare ones, or null.
  extent_node* next_spare() const noexcept { return left_; }

 private:
  friend class extent_index;
  enum class state : std::uint8_t { spare, granted, free };

  // Neighbors in order of address.
  extent_node* previous_ = nullptr;
  extent_node* next_ = nullptr;
  // Tree of the bin; of a spare node `left_` is the chain.
  extent_node* parent_ = nullptr;
  extent_node* left_ = nullptr;
  extent_node* right_ = nullptr;
  // Size in the high half, offset in the low one: as a number it is the order of the trees.
  std::uint64_t key_ = 0;
  std::uint32_t priority_ = 0;
  std::uint16_t bin_ = 0;  // of a free one
  state state_ = state::spare;
};

class extent_index {
 public:
  /// One free range of `granules`, from 1 to 2^32-1.
  explicit extent_index(std::uint32_t granules) noexcept;
  /// Nodes that are still in use are forgotten; the caller's objects may go before or after.
  ~extent_index() = default;
  extent_index(const extent_index&) = delete;
  extent_index& operator=(const extent_index&) = delete;

  struct taken {
    /// False: no free range is large enough. `node` is still the caller's then, and nothing changed.
    bool granted;
    /// A node that the index needs no more, or null. Never the one that was given.
    extent_node* spare;
  };
  /// Grants the smallest free range of at least `granules` (of equal ones the lowest), cut to exactly that size from
  /// its low end, and makes `node` name it. `granules` is not 0; `node` is spare.
  taken take(std::uint32_t granules, extent_node& node) noexcept;
  /// Takes the range that `node` names back, and joins it with free neighbors. The answer is a chain of nodes that the
  /// index needs no more: none, one, or two; `node` itself may be among them.
  extent_node* put(extent_node& node) noexcept;

  std::uint32_t granules() const noexcept { return granules_; }
  std::uint64_t free_granules() const noexcept { return free_granules_; }
  std::uint32_t free_extents() const noexcept { return free_extents_; }
  std::uint32_t granted_extents() const noexcept { return granted_extents_; }
  /// Size of the largest free range, 0 if there is none.
  std::uint32_t largest_free() const noexcept;
  /// Whether everything is one free range again.
  bool whole() const noexcept { return free_granules_ == granules_; }
  /// A number that depends on the set of free ranges only, not on how it came to be.
  std::uint64_t digest() const noexcept { return digest_; }

  /// Calls `visit(offset, granules, free)` for every extent in order of address.
  template <class F>
  void for_each(F&& visit) const {
    for (const extent_node* at = first_; at != nullptr; at = at->next_)
      visit(at->offset(), at->granules(), at->state_ == extent_node::state::free);
  }
  /// Whether every rule of the structure holds. Walks everything: for tests and checks.
  bool consistent() const noexcept;

 private:
  static constexpr std::uint32_t exact_bins = 256;  // bin n holds exactly n granules; bin 0 stays empty
  static constexpr std::uint32_t bins = exact_bins + 4 * 24;
  static constexpr std::uint32_t words = (bins + 63) / 64;

  static constexpr std::uint32_t broken = 0xffffffff;

  static std::uint16_t bin_of(std::uint32_t granules) noexcept;
  extent_node* find(std::uint32_t granules) const noexcept;
  void insert(extent_node& node) noexcept;
  void remove(extent_node& node) noexcept;
  void resize(extent_node& node, std::uint64_t key) noexcept;
  void rehang(extent_node& node, std::uint64_t key) noexcept;
  void unlink(extent_node& node) noexcept;
  std::uint32_t count_ordered(const extent_node* at, const extent_node* parent, std::uint32_t bin) const noexcept;
  void give_up(extent_node& node, extent_node*& chain) noexcept;

  std::uint64_t nonempty_[words] = {};
  extent_node* roots_[bins] = {};
  extent_node* first_ = nullptr;
  // Sums of 64 bits apart from each other: side by side the compiler updates them as a vector, which waits for the
  // scalar stores before it.
  std::uint64_t free_granules_ = 0;
  std::uint32_t granules_;
  std::uint32_t free_extents_ = 0;
  std::uint64_t digest_ = 0;
  std::uint32_t granted_extents_ = 0;
  extent_node initial_;
};

}  // namespace holdfast::inline HOLDFAST_ABI
