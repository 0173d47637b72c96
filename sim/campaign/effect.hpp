// Whether a planned fault changed anything.
//
// Why this exists: a test that is green because its fault was inert is the commonest lie of fault injection. A fault
// that fires has an effect if the run shows something else without it: so the run is made a second time with the same
// choices and the fault taken out, and everything that both log is compared, except that the fault was fired.
//
// That is exact in one direction, the one that matters: without any effect the two runs come to the same choice points,
// and the same choices make the same run. A fault that changes only what nobody logs counts as inert, as it should.
//
// Threading   One OS thread. Failure: none.
#pragma once

#include <sim/campaign/run_one.hpp>

#include <cstdint>

namespace holdfast::sim {

/// A hash over what a run logs, without the firings of planned fault `index`.
class effect_digest final : public listener {
 public:
  explicit effect_digest(std::size_t index) noexcept : index_(index) {}
  void on_event(world& w, const logged_event& e) override;
  std::size_t index() const noexcept { return index_; }
  bool operator==(const effect_digest& other) const noexcept {
    return index_ == other.index_ && events_ == other.events_ && hash_ == other.hash_;
  }

 private:
  std::size_t index_;
  std::uint64_t events_ = 0;
  std::uint64_t hash_ = 0;
};

/// `with` has seen the run that had `plan` and made the choices `indices`. True: without that fault it is another run.
/// `checks`: those that the run had, if it ended at a violation, so that its twin ends there too; otherwise none.
bool had_effect(const run_spec& spec, const plan& plan, const effect_digest& with,
                std::span<const std::uint8_t> indices, std::span<check* const> checks);

}  // namespace holdfast::sim
