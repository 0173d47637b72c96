// Proof that a transport's worker and context are gone.
//
// Why this exists: memory whose unmap was never confirmed may be freed only when nothing can reach it any
// more. The type makes that a compile-time fact: `release_unconfirmed` takes one, and only a transport that
// saw both destructions return can make one (spec/pinned-memory 6.2.4, spec/transport 7.13).
//
// Ownership   Move-only; spent by the call that takes it.
// Threading   A value.
// Failure     None: if teardown hung there is no witness.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstdint>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

namespace transport {
class teardown;
}
class host_backend;
class scripted_teardown;

class witness {
 public:
  witness(witness&& other) noexcept
      : incarnation_(other.incarnation_), epoch_(std::exchange(other.epoch_, 0)), fences_gets_(other.fences_gets_) {}
  witness& operator=(witness&&) = delete;

  std::uint64_t incarnation() const noexcept { return incarnation_; }
  /// Transport epoch that ended; 0 after a move.
  std::uint64_t epoch() const noexcept { return epoch_; }
  /// Whether the destruction ended every write of the operations it swept (capability `destroy_is_fence`).
  bool fences_gets() const noexcept { return fences_gets_; }

 private:
  // `teardown` is the one class of a transport that sees the destructions return. The host backend has no device at
  // all: it has seen enough when its only thread ended. The simulator's scripted device is told how it ends.
  friend class transport::teardown;
  friend class host_backend;
  friend class scripted_teardown;
  witness(std::uint64_t incarnation, std::uint64_t epoch, bool fences_gets) noexcept
      : incarnation_(incarnation), epoch_(epoch), fences_gets_(fences_gets) {}

  std::uint64_t incarnation_;
  std::uint64_t epoch_;
  bool fences_gets_;
};

}  // namespace holdfast::inline HOLDFAST_ABI
