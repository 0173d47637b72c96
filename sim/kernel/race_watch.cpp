#include <sim/kernel/race_watch.hpp>

#if defined(HOLDFAST_TSAN)

#include <sim/kernel/fiber.hpp>

extern "C" {
void __tsan_acquire(void*);
void __tsan_release(void*);
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned);
void __tsan_destroy_fiber(void*);
void __tsan_switch_to_fiber(void*, unsigned);
void __tsan_ignore_thread_begin();
void __tsan_ignore_thread_end();
}

namespace holdfast::sim::race {

namespace {

// With synchronization every switch would order the fibers, and no race between them would be seen.
constexpr unsigned without_synchronization = 1;

void* outside = nullptr;        // the twin of the OS thread
bool ignoring = false;          // of the running fiber, or of the thread outside
bool outside_ignoring = false;  // while a fiber runs

void* address_of(const void* p) noexcept { return const_cast<void*>(p); }

}  // namespace

void acquire(const void* address) noexcept { __tsan_acquire(address_of(address)); }
void release(const void* address) noexcept { __tsan_release(address_of(address)); }

void ignore(bool wanted) noexcept {
  if (wanted == ignoring) return;
  ignoring = wanted;
  if (wanted)
    __tsan_ignore_thread_begin();
  else
    __tsan_ignore_thread_end();
}

void begin(fiber& f) noexcept {
  if (f.race_fiber != nullptr) end(f);
  f.race_fiber = __tsan_create_fiber(0);
  f.race_ignores = false;
}

void leave(fiber* from, fiber* to) noexcept {
  if (from == nullptr) outside = __tsan_get_current_fiber();
  (from != nullptr ? from->race_ignores : outside_ignoring) = ignoring;
  ignoring = to != nullptr ? to->race_ignores : outside_ignoring;
  __tsan_switch_to_fiber(to != nullptr ? to->race_fiber : outside, without_synchronization);
}

void retire(fiber& f, const void* token) noexcept {
  if (f.race_fiber == nullptr) return;
  void* const here = __tsan_get_current_fiber();
  if (here == f.race_fiber) return release(token);
  __tsan_switch_to_fiber(f.race_fiber, without_synchronization);
  if (f.race_ignores) __tsan_ignore_thread_end();
  f.race_ignores = false;
  release(token);
  __tsan_switch_to_fiber(here, without_synchronization);
}

void end(fiber& f) noexcept {
  if (f.race_fiber == nullptr) return;
  __tsan_destroy_fiber(f.race_fiber);
  f.race_fiber = nullptr;
}

}  // namespace holdfast::sim::race

#endif
