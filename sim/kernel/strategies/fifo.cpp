#include <sim/kernel/strategies/fifo.hpp>

#include <sim/kernel/fiber.hpp>

namespace holdfast::sim {

std::uint32_t unforced_choice(const world& w, const choice_point& at) noexcept {
  if (at.current == choice_point::none) return 0;
  if (const fiber* running = w.running(); running == nullptr || running->pending != op_kind::yield) return at.current;
  const std::uint32_t next = at.current + 1;
  if (next < at.fibers) return next;
  return at.fibers == 1 && !at.calm ? 1 : 0;
}

}  // namespace holdfast::sim
