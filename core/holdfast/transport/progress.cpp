#include <holdfast/platform/abi.hpp>

#include <holdfast/telemetry/emit.hpp>
#include <holdfast/transport/progress.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::transport {

namespace {

// In the order of the event `progress_state`.
enum class loop_state : std::uint8_t { working, arming, sleeping, stopped };

void tell(event_log& log, const settings& values, loop_state state, bool queued) noexcept {
  emit::progress_state(log, values.epoch, static_cast<std::uint64_t>(state), queued ? 1u : 0u);
}

// Without work, more wakes than this in a second mean that a descriptor stays readable.
constexpr std::uint64_t idle_wakes_max = 1000;

// How long to wait before a library that cannot be armed is looked at again.
constexpr platform::duration unarmed_pause = std::chrono::milliseconds(1);

}  // namespace

bool progress_loop::submit(command& item) noexcept {
  if (!queue_.push(item)) return false;
  if (sleeping_.load(std::memory_order_seq_cst)) poller_.wake();
  return true;
}

void progress_loop::stop() noexcept {
  stop_.store(true, std::memory_order_seq_cst);
  poller_.wake();
}

bool progress_loop::work(platform::time_point& now) noexcept {
  bool did = false;
  bool silent = false;
  // What had come when we woke, perhaps a while ago, is heard before anything is handed over: a send of ours to a peer that
  // has died meanwhile would make the answer to its last request the second one, which ends the process (decision 53).
  if (std::exchange(library_woke_, false)) {
    silent = wire_.progress() == 0;
    did = !silent;
  }
  for (command* item = queue_.take_all(); item != nullptr;) {
    command* const next = item->next_command;
    item->execute();
    item = next;
    did = true;
  }
  for (unsigned calls = 0; calls < settings_.progress_batch && (did || !silent); ++calls) {
    if (wire_.progress() == 0) break;
    did = true;
  }
  now = clock_.now();
  const bool stepped = client_.step(now);
  return did || stepped;
}

bool progress_loop::spin(platform::time_point now) noexcept {
  const platform::time_point until = now + settings_.progress_spin;
  while (now < until) {
    if (queue_.pending() || stopping()) return true;
    if (wire_.progress() != 0) return true;
    if (client_.has_work()) return true;
    poller_.relax(std::min(until, client_.nearest_deadline()));
    now = clock_.now();
    if (now >= client_.nearest_deadline()) return true;
  }
  return false;
}

void progress_loop::sleep() noexcept {
  sleeping_.store(true, std::memory_order_seq_cst);
  tell(log_, settings_, loop_state::arming, false);
  platform::time_point until = client_.nearest_deadline();
  const arm_answer armed = arm_failed_ ? arm_answer::failed : wire_.arm();
  if (armed == arm_answer::busy) {
    sleeping_.store(false, std::memory_order_seq_cst);
    return;
  }
  if (armed == arm_answer::failed) {
    if (!arm_failed_) {
      arm_failed_ = true;
      sleeping_.store(false, std::memory_order_seq_cst);
      client_.arm_failed();
      return;
    }
    // Closing without the library's wakeup: look again after a pause.
    until = std::min(until, clock_.now() + unarmed_pause);
  }
  const bool stop = stopping();
  const bool queued = queue_.pending();
  if (stop || queued || client_.has_work() || client_.finished()) {
    sleeping_.store(false, std::memory_order_seq_cst);
    return;
  }
  tell(log_, settings_, loop_state::sleeping, queued);
  const platform::wake_cause cause = poller_.wait(until);
  sleeping_.store(false, std::memory_order_seq_cst);
  poller_.drain_wakes();
  just_woke_ = true;
  library_woke_ = cause & platform::wake_cause::descriptor;
  count_wake(cause, clock_.now());
}

void progress_loop::count_wake(platform::wake_cause cause, platform::time_point now) noexcept {
  const bool woken = cause & platform::wake_cause::woken;
  const bool descriptor = cause & platform::wake_cause::descriptor;
  const bool deadline = cause & platform::wake_cause::deadline;
  // In the order of the event: none, woken, descriptor, both, deadline.
  const std::uint64_t shown = woken && descriptor ? 3 : descriptor ? 2 : woken ? 1 : deadline ? 4 : 0;
  emit::progress_woke(log_, settings_.epoch, shown);
  if (now - storm_began_ > std::chrono::seconds(1)) {
    storm_began_ = now;
    idle_wakes_ = 0;
  }
}

void progress_loop::run() noexcept {
  if (stopping()) return;
  tell(log_, settings_, loop_state::working, false);
  platform::time_point now{};
  while (!client_.finished() && !stopping()) {
    const bool did = work(now);
    if (just_woke_) {
      just_woke_ = false;
      if (!did && ++idle_wakes_ == idle_wakes_max + 1) emit::wake_storm(log_, settings_.epoch, idle_wakes_);
    }
    if (did) continue;
    if (spin(now)) continue;
    sleep();
  }
  // After `stop` everything was given up for leaked, the log perhaps gone with its owner.
  if (!stopping()) tell(log_, settings_, loop_state::stopped, queue_.pending());
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
