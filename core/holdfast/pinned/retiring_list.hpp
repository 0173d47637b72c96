// Arenas that left service and whose registration is not known to be gone.
//
// Why this exists: whoever retires an arena may be cancelled, time out or be destroyed; the arena must be found again
// by shutdown and by the witness. So it is listed in the very section that takes it out of service.
//
// Ownership   Membership is the registration's share of the arena.
// Threading   One lock, a leaf, taken inside the section that retires.
// Failure     None: the links are in the arenas.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/intrusive_list.hpp>
#include <holdfast/base/thread_annotations.hpp>
#include <holdfast/pinned/arena.hpp>
#include <holdfast/platform/mutex.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace holdfast::inline HOLDFAST_ABI::pinned {

class retiring_list {
 public:
  retiring_list() noexcept;

  void add(arena& retired) noexcept;
  /// Takes a settled arena off. False: it was taken off before, and the registration's share with it.
  bool remove(arena& settled) noexcept;
  /// Chains every arena that is on the list by `next_swept`, in order, each with a share of its own.
  arena* share_all() noexcept;
  /// The same for a timed sweep, by `next_looked_after`.
  arena* share_for_looking_after() noexcept;
  /// Writes as many as fit into `into`, each with a share of its own; answers how many.
  std::size_t share_some(std::span<arena*> into) noexcept;
  /// Claims every arena that is on the list and not settled; chains those that the caller has to settle, by
  /// `next_claimed`.
  arena* claim_all() noexcept;
  /// Takes off whatever is left, whose registrations will never be known to be gone: one chain by
  /// `next_claimed`, the registrations' shares are the caller's.
  arena* forget_all() noexcept;
  std::size_t size() noexcept;

 private:
  platform::mutex mutex_;
  intrusive_list<arena, retiring_hook> list_ HOLDFAST_GUARDED_BY(mutex_);
};

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
