// What core demands of the side it is compiled for: spelling as concepts, meaning as numbered clauses.
//
// Why this exists: the core is built against real threads and against simulated ones. A concept can check
// names and types; the clauses say what they mean, and tests/conformance/platform runs each of them on both
// sides. The archetype (tests/archetype) offers this and nothing else, so core that outgrows it does not compile.
//
//   C1  now() never decreases.                      C2  Nanoseconds, signed 64 bits.
//   M1  A mutex has at most one owner.              M2  unlock happens before the next lock returns.
//   M3  try_lock does not wait.                     M4  Shared owners exclude the exclusive one and it them.
//   V1  wait releases and re-takes the mutex.       V2  A notification after a wait began ends that wait (or another's,
//   V3  wait_until answers false only after its         for notify_one).
//       deadline passed.
//   A1  Operations are atomic, in the memory order named.  A2  Sequentially consistent ones have one total order.
//   R1  decrement() is true for exactly one caller. R2  It happens after every other owner's use.
//   R3  increment_unless_zero() is false once zero was reached.
//   T1  start() runs the body once, on another thread.     T2  join() returns after the body did.
//   T3  Numbers of living threads are unique and not 0.    T4  Destroying a joinable thread stops the process.
//   X1  post() never runs the item inline.          X2  One executor thread runs items in the order posted.
//   X3  A timer runs not before its deadline.       X4  cancel() is exact: it answers true, or the item runs (or is dropped).
//   X5  After stop() returned nothing runs, what was queued or armed was dropped, post() and arm() answer false.
//   X6  The handle models an Asio executor that never blocks.
//   P1  Pages are zero and aligned to page_size().  P2  Two live ranges never overlap.
//   P3  After free() the range may be granted again. P4 A tombstone reads as zeros and is not granted again.
//   P5  Failure changes nothing.
//   L1  wake() ends the current or the next wait.   L2  A wake stays pending until drained.
//   L3  A readable watched descriptor ends the wait. L4 wait() returns at its deadline, not before unless woken.
//   L5  wake() is callable from any thread.
//   H1  heap_fault(site) is true only where a test planted it.
//   I1  Draws are never 0 and never repeat.
//   S1  A slot holds one pointer for each thread, null at first.
//   D1  Settings are in the environment before the library is loaded.  D2  A missing library is an error, a missing
//   D3  A loaded library stays loaded.                                     symbol a null pointer.
//   B1  stop_process() does not return and runs no destructor of ours.
//   O1  Observers change nothing that core can see.
//   Z1  A host's parts outlive the runtimes made with it.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/lock_class.hpp>
#include <holdfast/base/work_item.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/condition_variable.hpp>
#include <holdfast/platform/driver_library.hpp>
#include <holdfast/platform/executor.hpp>
#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/platform/identity_seed.hpp>
#include <holdfast/platform/mutex.hpp>
#include <holdfast/platform/observe.hpp>
#include <holdfast/platform/pages.hpp>
#include <holdfast/platform/poller.hpp>
#include <holdfast/platform/ref_count.hpp>
#include <holdfast/platform/stop_process.hpp>
#include <holdfast/platform/thread.hpp>
#include <holdfast/platform/thread_slot.hpp>

#include <concepts>
#include <expected>
#include <functional>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI {

template <class C>
concept clock_contract = requires(const C& clock) {
  requires std::same_as<typename C::rep, std::int64_t>;
  requires std::same_as<typename C::period, std::nano>;
  { clock.now() } noexcept -> std::same_as<typename C::time_point>;
};

template <class M>
concept mutex_contract = requires(M& mutex) {
  mutex.lock();
  { mutex.try_lock() } -> std::same_as<bool>;
  mutex.unlock();
} && std::constructible_from<M, const lock_class&> && !std::is_copy_constructible_v<M>;

template <class M>
concept shared_mutex_contract = requires(M& mutex) {
  mutex.lock();
  mutex.unlock();
  mutex.lock_shared();
  mutex.unlock_shared();
} && std::constructible_from<M, const lock_class&> && !std::is_copy_constructible_v<M>;

template <class V, class M, class T>
concept condition_variable_contract = requires(V& condition, M& mutex, T deadline) {
  condition.wait(mutex);
  { condition.wait_until(mutex, deadline) } -> std::same_as<bool>;
  { condition.notify_one() } noexcept;
  { condition.notify_all() } noexcept;
};

template <class R>
concept ref_count_contract = requires(R& count, const R& seen) {
  { count.increment() } noexcept;
  { count.decrement() } noexcept -> std::same_as<bool>;
  { count.increment_unless_zero() } noexcept -> std::same_as<bool>;
  { seen.observed() } noexcept -> std::same_as<std::uint32_t>;
};

template <class T>
concept thread_contract =
    std::movable<T> && requires(T& thread, std::string_view name, std::move_only_function<void()> body) {
      { T::start(name, std::move(body)) } -> std::same_as<std::expected<T, int>>;
      { thread.joinable() } noexcept -> std::same_as<bool>;
      thread.join();
      { thread.abandon() } noexcept;
    };

template <class X, class I, class T>
concept executor_contract = std::copyable<X> && std::equality_comparable<X> &&
                            requires(const X& executor, work_item& item, I& timer, T deadline) {
                              { executor.post(item) } noexcept -> std::same_as<bool>;
                              { executor.arm(timer, deadline) } noexcept -> std::same_as<bool>;
                              { executor.cancel(timer) } noexcept -> std::same_as<bool>;
                            };

template <class P>
concept pages_contract = requires(P& pages, std::byte* base, std::size_t bytes) {
  { pages.page_size() } noexcept -> std::same_as<std::size_t>;
  { pages.allocate(bytes) } noexcept -> std::same_as<std::expected<std::byte*, int>>;
  { pages.free(base, bytes) } noexcept;
  { pages.tombstone(base, bytes) } noexcept -> std::same_as<bool>;
};

template <class P, class H, class T>
concept poller_contract = std::movable<P> && requires(P& poller, H& host, int descriptor, T deadline) {
  { P::create(host) } noexcept -> std::same_as<std::expected<P, int>>;
  { poller.add(descriptor) } noexcept -> std::same_as<bool>;
  { poller.wait(deadline) } noexcept -> std::same_as<platform::wake_cause>;
  { poller.wake() } noexcept;
  { poller.drain_wakes() } noexcept;
  { poller.relax(deadline) } noexcept;
};

template <class D>
concept driver_library_contract =
    requires(const D& library, const char* name, std::span<const platform::environment_setting> settings) {
      { D::open(name, settings) } -> std::same_as<std::expected<D, std::string>>;
      { library.symbol(name) } noexcept -> std::same_as<void*>;
    };

template <class H>
concept host_contract = requires(H& host) {
  { host.clock() } noexcept;
  { host.pages() } noexcept;
  { host.identity_seed().draw() } noexcept -> std::same_as<std::uint64_t>;
  { host.executor() } noexcept;
};

static_assert(clock_contract<platform::clock>);
static_assert(mutex_contract<platform::mutex>);
static_assert(shared_mutex_contract<platform::shared_mutex>);
static_assert(condition_variable_contract<platform::condition_variable, platform::mutex, platform::time_point>);
static_assert(ref_count_contract<platform::ref_count>);
static_assert(thread_contract<platform::thread>);
static_assert(executor_contract<platform::executor, platform::timer_item, platform::time_point>);
static_assert(pages_contract<platform::pages>);
static_assert(poller_contract<platform::poller, platform::host, platform::time_point>);
static_assert(driver_library_contract<platform::driver_library>);
static_assert(host_contract<platform::host>);

}  // namespace holdfast::inline HOLDFAST_ABI
