#include <holdfast/platform/abi.hpp>

#include <holdfast/telemetry/emit.hpp>
#include <holdfast/transport/engine.hpp>
#include <holdfast/transport/teardown.hpp>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::transport {

namespace {
// For callbacks of what was cancelled, after the last forced close.
constexpr platform::duration callback_patience = std::chrono::microseconds(200);
// Each look takes some hundred microseconds if anybody is left; who is then left for longer says nothing.
constexpr unsigned newcomer_looks_max = 50;
}  // namespace

bool teardown::begun() noexcept {
  scoped_lock lock(mutex_);
  return begun_;
}

bool teardown::ends() noexcept {
  scoped_lock lock(mutex_);
  return begun_ || alone_;
}

void teardown::begin_alone() noexcept {
  {
    scoped_lock lock(mutex_);
    if (begun_ || alone_) return;
    alone_ = true;
  }
  of_.table.close();
  of_.move_to(transport_state::closing);
  enter_closing(of_.host.clock().now() + of_.options.close_timeout);
}

void teardown::begin(platform::time_point deadline, std::optional<completion<answer>> told) noexcept {
  bool first = false;
  bool joins = false;
  bool only_memory_is_left = false;
  std::optional<answer> at_once;
  {
    scoped_lock lock(mutex_);
    first = !begun_;
    joins = alone_;
    only_memory_is_left = worker_ended_;
    if (first) {
      begun_ = true;
      deadline_ = deadline;
    }
    if (told) {
      if (answered_) {
        at_once.emplace(teardown_result{report_, std::nullopt});
      } else {
        try {
          told_.push_back(std::move(*told));
          told.reset();
        } catch (const std::bad_alloc&) {
          at_once.emplace(fail(error_code::out_of_memory, "transport.teardown"));
        }
      }
    }
  }
  if (at_once) told->complete(std::move(*at_once));
  if (!first) return;

  if (!joins) {
    of_.table.close();
    of_.move_to(transport_state::closing);
  }
  // The flag stands before anything can end the teardown, so that whoever ends it knows whether the timer will run.
  armed_.store(true, std::memory_order_release);
  if (deadline == platform::never || !of_.host.executor().arm(timer_, deadline))
    armed_.store(false, std::memory_order_release);
  if (!joins) {
    of_.loop.submit(start_);
  } else if (only_memory_is_left) {
    of_.memory.finish();
  } else {
    owner_joined_.store(true, std::memory_order_release);
    of_.loop.wake();
  }
}

void teardown::skip() noexcept {
  scoped_lock lock(mutex_);
  begun_ = silent_ = answered_ = true;
}

void teardown::start() noexcept {
  platform::time_point deadline = platform::never;
  {
    scoped_lock lock(mutex_);
    deadline = deadline_;
  }
  enter_closing(deadline);
}

void teardown::share_out(platform::time_point now, platform::time_point deadline) noexcept {
  if (deadline != platform::never) {
    // Half of the time for transfers to finish, a quarter for endpoints to close, the rest for the library's own end.
    const platform::duration left = std::max(deadline - now, platform::duration::zero());
    drain_until_ = now + left / 2;
    close_until_ = now + left / 4 * 3;
  }
}

void teardown::enter_closing(platform::time_point deadline) noexcept {
  const platform::time_point now = of_.host.clock().now();
  share_out(now, deadline);
  phase_ = phase::closing;
  for (command* item = of_.loop.queue().close(); item != nullptr;) {
    command* const next = item->next_command;
    item->refuse();
    item = next;
  }
  of_.library->let_nobody_in();
  of_.connections.close_all(now, drain_until_);
}

bool teardown::step(platform::time_point now) noexcept {
  if (phase_ != phase::closing) return false;
  if (owner_joined_.load(std::memory_order_acquire) && owner_joined_.exchange(false, std::memory_order_acq_rel)) {
    platform::time_point deadline = platform::never;
    {
      scoped_lock lock(mutex_);
      deadline = deadline_;
    }
    share_out(now, std::min(deadline, now + of_.options.close_timeout));
  }
  if (of_.connections.living() == 0 || now >= close_until_) {
    collect_callbacks(now);
    destroy_worker();
    return true;
  }
  if (now >= drain_until_ && !forced_) {
    forced_ = true;
    of_.connections.force_all(now);
    return true;
  }
  return false;
}

void teardown::collect_callbacks(platform::time_point now) noexcept {
  if (of_.connections.living() == 0) return;
  of_.connections.force_all(now);
  // What the force has cancelled is called back by progress soon, however late we are: keys that it releases can then
  // still go before their worker. Most of the time that is kept for the library's own end is left to it.
  platform::duration patience = callback_patience;
  if (close_until_ != platform::never) patience = std::min(patience, (close_until_ - drain_until_) / 4 * 3);
  const platform::time_point until = of_.host.clock().now() + patience;
  for (unsigned calls = 0; calls < of_.options.progress_batch && of_.connections.living() != 0;) {
    const bool progressed = of_.library->progress() != 0;
    const platform::time_point at = of_.host.clock().now();
    const bool stepped = of_.connections.step(at);
    if (progressed || stepped) {
      ++calls;
      continue;
    }
    if (at >= until || !of_.connections.owes_callbacks()) break;
    of_.poller.relax(until);
  }
}

platform::time_point teardown::nearest_deadline() const noexcept {
  if (phase_ != phase::closing) return platform::never;
  return forced_ ? close_until_ : std::min(drain_until_, close_until_);
}

void teardown::destroy_worker() noexcept {
  of_.move_to(transport_state::destroying);
  // A request that comes while the library destroys its listener ends the process, and so may a socket that is closed while
  // another takes its number (docs/life-of-a-connection.md): so first nothing more is heard, and then who asked is refused.
  for (unsigned looks = 0;; ++looks) {
    const std::size_t left = of_.library->shut_out_newcomers();
    of_.connections.reject_all();
    if (left == 0 || looks == newcomer_looks_max) break;
    for (unsigned calls = 0; calls < of_.options.progress_batch && of_.library->progress() != 0;) ++calls;
  }
  of_.library->destroy_listener();
  of_.library->destroy_worker();
  // The owner may have left meanwhile: then nothing of his is touched any more.
  if (of_.loop.stopping()) return;
  emit::worker_destroyed(of_.log, of_.options.epoch);
  const std::uint64_t swept = of_.table.sweep();
  emit::table_swept(of_.log, of_.options.epoch, swept);
  // Late is better than never for who waits, but the report that told of a hang stands.
  if (!hung()) of_.move_to(transport_state::swept);
  of_.connections.worker_gone();
  bool owner_began = false;
  {
    scoped_lock lock(mutex_);
    report_.swept = swept;
    report_.forced = of_.connections.forced();
    report_.parked = of_.connections.parked();
    worker_ended_ = true;
    owner_began = begun_;
  }
  phase_ = phase::handed_over;
  if (owner_began) of_.memory.finish();
}

void teardown::context_closed(std::uint64_t unconfirmed) noexcept {
  bool silent = false;
  {
    scoped_lock lock(mutex_);
    silent = silent_;
    report_.unconfirmed = unconfirmed;
  }
  verdict expected = verdict::open;
  if (!verdict_.compare_exchange_strong(expected, verdict::gone, std::memory_order_acq_rel)) {
    ended_late_.store(true, std::memory_order_release);
    return;
  }
  if (silent) return;
  of_.move_to(transport_state::gone);
  emit::witness_issued(of_.log, of_.options.epoch, unconfirmed);
  if (armed_.load(std::memory_order_acquire) && !of_.host.executor().cancel(timer_)) return;  // the timer delivers
  if (!of_.host.executor().post(delivery_)) deliver(false);
}

void teardown::deadline_passed() noexcept {
  verdict expected = verdict::open;
  if (!verdict_.compare_exchange_strong(expected, verdict::hung, std::memory_order_acq_rel)) {
    // Hung already: the owner left, and this timer came too late to be cancelled.
    if (expected == verdict::gone) deliver(true);
    return;
  }
  teardown_report report;
  {
    scoped_lock lock(mutex_);
    report = report_;
  }
  report.hung = true;
  report.operations = of_.table.outstanding();
  report.registrations = of_.memory.regions();
  emit::teardown_hung(of_.log, of_.options.epoch, report.operations, report.registrations);
  of_.move_to(transport_state::hung);
  of_.loop.stop();
  of_.memory.stand_down();
  of_.table.tell_unknown();
  of_.calls.tell_all(fail_with_words(error_code::timed_out, "transport.wait", "the library does not return").error());
  of_.abandon();
  static_cast<void>(answer_all(report, std::nullopt));
}

void teardown::timer_dropped() noexcept {
  // The executor was stopped. If the end came before, the delivery was left to this timer; otherwise it is still to come.
  armed_.store(false, std::memory_order_release);
  if (gone()) deliver(false);
}

void teardown::deliver(bool on_executor) noexcept {
  // Both threads have done their last and only have to return.
  if (on_executor) of_.join();
  teardown_report report;
  {
    scoped_lock lock(mutex_);
    report = report_;
  }
  const bool ownerless =
      answer_all(report, witness(of_.self.incarnation, of_.options.epoch, of_.options.destroy_is_fence));
  // Not from the registration thread, which is part of the engine: then it stays.
  if (ownerless && on_executor) delete &of_;
}

bool teardown::owner_leaves() noexcept {
  std::vector<completion<answer>> told;
  verdict expected = verdict::open;
  const bool ended = !verdict_.compare_exchange_strong(expected, verdict::hung, std::memory_order_acq_rel);
  {
    scoped_lock lock(mutex_);
    if (ended && expected == verdict::gone && answered_) return true;
    if (ended && expected == verdict::hung && ended_late_.load(std::memory_order_acquire)) return true;
    ownerless_ = true;
    answered_ = true;
    told.swap(told_);
  }
  // Nothing of the log or the host is touched any more.
  if (!ended && armed_.load(std::memory_order_acquire)) static_cast<void>(of_.host.executor().cancel(timer_));
  return false;
}

bool teardown::answer_all(teardown_report report, std::optional<witness> proof) noexcept {
  std::vector<completion<answer>> told;
  bool ownerless = false;
  {
    scoped_lock lock(mutex_);
    report_ = report;
    answered_ = true;
    ownerless = ownerless_;
    told.swap(told_);
  }
  // A handler may destroy the transport: nothing of this object is touched from here on.
  for (auto& one : told) {
    teardown_result given{report, std::nullopt};
    if (proof) {
      given.proof.emplace(std::move(*proof));
      proof.reset();
    }
    one.complete(std::move(given));
  }
  return ownerless;
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
