// What ThreadSanitizer has to be told about fibers, so that core's own plain data is watched in its build.
//
// Why this exists: fibers share one OS thread, and to the tool everything on one thread is in order. So each fiber is a
// thread of its own to it, switched to without synchronization, and only what synchronizes fibers of the program under
// test is an edge: locks, posts, atomics, reference counts, starts and joins. The simulator's own code is compiled
// without instrumentation and works in kernel scope, where the tool does not look: it shares everything on purpose.
//
// In other builds all of this is nothing.
//
// Ownership   A fiber's twin in the tool is made when the fiber is spawned and ended with its world.
// Threading   One OS thread. Failure: none.
#pragma once

#if defined(HOLDFAST_TSAN)
// For accessors in headers, which are compiled into instrumented code: what they read and write is an edge, or guarded by one.
#define HOLDFAST_UNWATCHED __attribute__((no_sanitize("thread")))
#else
#define HOLDFAST_UNWATCHED
#endif

namespace holdfast::sim {

class fiber;

namespace race {

#if defined(HOLDFAST_TSAN)
/// Everything before a `release` of an address happens before what follows a later `acquire` of it.
void acquire(const void* address) noexcept;
void release(const void* address) noexcept;
inline void synchronize(const void* address) noexcept {
  acquire(address);
  release(address);
}
/// Kernel scope was entered, or left.
void ignore(bool wanted) noexcept;
void begin(fiber& f) noexcept;
/// Before the switch from `from` to `to` (null: outside any fiber).
void leave(fiber* from, fiber* to) noexcept;
/// After a fiber's last step, whenever that was: what it did happens before what follows an `acquire` of `token`.
void retire(fiber& f, const void* token) noexcept;
/// Ends its twin, after `retire`. Not of the running fiber.
void end(fiber& f) noexcept;
#else
inline void acquire(const void*) noexcept {}
inline void release(const void*) noexcept {}
inline void synchronize(const void*) noexcept {}
inline void begin(fiber&) noexcept {}
inline void leave(fiber*, fiber*) noexcept {}
inline void retire(fiber&, const void*) noexcept {}
inline void end(fiber&) noexcept {}
#endif

}  // namespace race

}  // namespace holdfast::sim
