// The schedule without surprises: nobody is preempted, and time moves when nothing else can.
//
// Why this exists: it is the fastest way through a large world, and what the other strategies fall back to.
//
// Threading   One OS thread, in kernel scope. Failure: none.
#pragma once

#include <sim/kernel/strategy.hpp>

namespace holdfast::sim {

/// What goes on without a preemption: the current fiber, or else the oldest one that can run. A fiber that yields gives
/// way to the next, or to time if it is alone: it waits for somebody.
std::uint32_t unforced_choice(const world& w, const choice_point& at) noexcept;

class fifo_strategy final : public strategy {
 public:
  std::string_view name() const noexcept override { return "fifo"; }
  void begin(world&) override {}
  std::uint32_t choose(world& w, const choice_point& at) override { return unforced_choice(w, at); }
};

}  // namespace holdfast::sim
