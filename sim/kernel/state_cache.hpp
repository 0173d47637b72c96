// The states that a search of all schedules has searched, and with how many preemptions left.
//
// Why this exists: a state that was searched with as many preemptions left, and with the same fiber to go on for nothing,
// holds nothing new. With another fiber to go on, one more preemption left makes up for it; with none, every choice was
// free.
//
// Ownership   A search's. About 16 bytes a state, at most `bytes_max`; when it is full it learns no more, which costs
//             schedules and loses nothing.
// Units       Preemptions left; states by `causal_order::state`.
// Threading   One OS thread, in kernel scope.
// Failure     `contradicted`: a state was met again and looked different, so the dependences of `causal_order` are
//             incomplete; the search means nothing then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast::sim {

class state_cache {
 public:
  static constexpr std::uint32_t nobody = 0xffffffff;

  explicit state_cache(std::size_t bytes_max = std::size_t{1} << 31) noexcept : bytes_max_(bytes_max) {}

  /// Whether the state needs no search, because one at least as wide was made or is being made. If it needs one, it
  /// counts as searched from here on. `current`: the fiber that goes on for nothing, or `nobody`. `looks`: what else
  /// must be the same in the same state.
  bool known(std::uint64_t state, std::uint32_t current, std::uint32_t left, std::uint32_t looks);
  void clear() noexcept;

  bool contradicted() const noexcept { return contradicted_; }
  std::uint64_t size() const noexcept { return used_; }

 private:
  struct entry {
    std::uint64_t key = 0;  // 0: empty
    std::uint32_t looks = 0;
    std::uint32_t left = 0;  // most preemptions left so far
  };
  entry* find(std::uint64_t key) noexcept;
  entry* at(std::uint64_t key, std::uint32_t looks);
  void grow();

  std::size_t bytes_max_;
  std::vector<entry> entries_;  // a power of two, or none
  std::uint64_t used_ = 0;
  bool contradicted_ = false;
};

}  // namespace holdfast::sim
