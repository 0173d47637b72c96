#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/retiring_list.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>

namespace holdfast::inline HOLDFAST_ABI::pinned {

namespace {

bool listed(arena& one) noexcept { return static_cast<list_hook<retiring_hook>&>(one).linked(); }

/// Builds a chain in the order of the calls.
template <arena* arena::* Link>
class chain {
 public:
  void append(arena& one) noexcept {
    one.*Link = nullptr;
    *end_ = &one;
    end_ = &(one.*Link);
  }
  arena* first = nullptr;

 private:
  arena** end_ = &first;
};

}  // namespace

retiring_list::retiring_list() noexcept : mutex_(lock_ranks::pinned_retiring_list) {}

void retiring_list::add(arena& retired) noexcept {
  scoped_lock lock(mutex_);
  list_.push_back(retired);
}

bool retiring_list::remove(arena& settled) noexcept {
  scoped_lock lock(mutex_);
  if (!listed(settled)) return false;
  list_.erase(settled);
  return true;
}

arena* retiring_list::share_all() noexcept {
  chain<&arena::next_swept> shared;
  scoped_lock lock(mutex_);
  for (arena& one : list_) {
    one.add_share();
    shared.append(one);
  }
  return shared.first;
}

arena* retiring_list::share_for_looking_after() noexcept {
  chain<&arena::next_looked_after> shared;
  scoped_lock lock(mutex_);
  for (arena& one : list_) {
    one.add_share();
    shared.append(one);
  }
  return shared.first;
}

std::size_t retiring_list::share_some(std::span<arena*> into) noexcept {
  std::size_t count = 0;
  scoped_lock lock(mutex_);
  for (arena& one : list_) {
    if (count == into.size()) break;
    one.add_share();
    into[count++] = &one;
  }
  return count;
}

arena* retiring_list::claim_all() noexcept {
  chain<&arena::next_claimed> claimed;
  scoped_lock lock(mutex_);
  for (arena& one : list_)
    if (one.claim_settle()) claimed.append(one);
  return claimed.first;
}

arena* retiring_list::forget_all() noexcept {
  chain<&arena::next_claimed> forgotten;
  scoped_lock lock(mutex_);
  while (arena* const one = list_.pop_front()) forgotten.append(*one);
  return forgotten.first;
}

std::size_t retiring_list::size() noexcept {
  scoped_lock lock(mutex_);
  return list_.size();
}

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
