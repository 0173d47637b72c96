// Stacks of fibers, with a guard page below each, kept between worlds.
#pragma once

#include <cstddef>

namespace holdfast::sim {

struct stack_memory {
  std::byte* low = nullptr;  // lowest usable byte; the guard lies below
  std::size_t bytes = 0;
};

/// Bytes below a stack that nobody may touch: more than the largest frame of a sound program, which would step over
/// a smaller guard.
inline constexpr std::size_t stack_guard_bytes = 64 * 1024;

/// A stack whose contents are unspecified. Aborts with a message if the system has no memory for one.
stack_memory acquire_stack();
/// Before reuse: an abandoned fiber left the red zones of its frames behind.
void unpoison_stack(stack_memory stack) noexcept;
void release_stack(stack_memory stack) noexcept;

}  // namespace holdfast::sim
