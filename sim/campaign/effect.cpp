#include <sim/campaign/effect.hpp>

#include <sim/kernel/strategies/replay.hpp>

#include <limits>

namespace holdfast::sim {

void effect_digest::on_event(world&, const logged_event& e) {
  if (e.kind == hardware_event::fault_fired && e.fields[0] == index_) return;
  // Says the same as `fault_fired`, of a cancellation.
  if (e.kind == hardware_event::cancel_fired) return;
  ++events_;
  const auto mix = [this](std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15u;
    hash_ ^= hash_ >> 29;
  };
  mix(static_cast<std::uint64_t>(e.time_ns));
  mix((std::uint64_t{static_cast<std::uint16_t>(e.kind)} << 48) | (std::uint64_t{e.host} << 32) | e.fiber);
  for (unsigned i = 0; i < e.field_count; ++i) mix(e.fields[i]);
}

bool had_effect(const run_spec& spec, const plan& plan, const effect_digest& with,
                std::span<const std::uint8_t> indices, std::span<check* const> checks) {
  // Left in its place, so that the other faults keep their numbers.
  sim::plan without = plan;
  without.faults[with.index()].nth = std::numeric_limits<std::uint64_t>::max();
  effect_digest digest(with.index());
  listener* const listening[] = {&digest};
  index_replay_strategy replay(indices, after_mismatch::fifo);
  const run_outcome twin = run_one(spec, without, replay, {checks, listening, false, false});
  // It asked for a choice that the record does not hold.
  if (twin.wrong && twin.wrong->invariant == divergence) return true;
  return !(digest == with);
}

}  // namespace holdfast::sim
