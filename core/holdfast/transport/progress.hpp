// The progress loop: the one place that calls the library's progress, arms it, and sleeps.
//
// Why this exists: a wakeup that is lost here is an operation that hangs for ever (spec/transport 7.2). A submitter
// pushes and then reads `sleeping`; the loop sets `sleeping`, arms, and then looks at the queue again. Both are
// sequentially consistent, so one of the two sees the other. Nothing calls the library between arming and sleeping,
// because that would use the arming up.
//
// Ownership   References only.
// Units       Absolute deadlines.
// Threading   `run` on the progress thread; `submit` and `stop` from any.
// Failure     `submit` answers false once the queue is closed.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/poller.hpp>
#include <holdfast/telemetry/event_log.hpp>
#include <holdfast/transport/settings.hpp>
#include <holdfast/transport/submission_queue.hpp>
#include <holdfast/transport/wire.hpp>

#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::transport {

/// What the loop drives beside the library.
class progress_client {
 public:
  /// Acts on what callbacks recorded and on deadlines that passed. True if anything was done.
  virtual bool step(platform::time_point now) noexcept = 0;
  /// Whether callbacks recorded something that `step` has not acted on.
  virtual bool has_work() const noexcept = 0;
  virtual platform::time_point nearest_deadline() const noexcept = 0;
  /// The loop ends.
  virtual bool finished() const noexcept = 0;
  /// Arming failed for good; the transport has to close. Called at most once.
  virtual void arm_failed() noexcept = 0;

 protected:
  ~progress_client() = default;
};

class progress_loop {
 public:
  progress_loop(event_log& log, const platform::clock& clock, platform::poller& poller, wire& library,
                const settings& values, progress_client& client) noexcept
      : log_(log), clock_(clock), poller_(poller), wire_(library), settings_(values), client_(client) {}

  bool submit(command& item) noexcept;
  submission_queue& queue() noexcept { return queue_; }
  /// Makes the loop look at its client again.
  void wake() noexcept { poller_.wake(); }
  /// Makes the loop end at its next step, without another call of the library.
  void stop() noexcept;
  bool stopping() const noexcept { return stop_.load(std::memory_order_seq_cst); }

  /// Until the client is finished, or `stop`.
  void run() noexcept;

 private:
  bool work(platform::time_point& now) noexcept;
  bool spin(platform::time_point now) noexcept;
  void sleep() noexcept;
  void count_wake(platform::wake_cause cause, platform::time_point now) noexcept;

  event_log& log_;
  const platform::clock& clock_;
  platform::poller& poller_;
  wire& wire_;
  const settings& settings_;
  progress_client& client_;
  submission_queue queue_;
  platform::atomic<bool> sleeping_{false};
  platform::atomic<bool> stop_{false};
  bool arm_failed_ = false;

  // Wakes since `storm_began_` after which there was nothing to do.
  std::uint64_t idle_wakes_ = 0;
  platform::time_point storm_began_{};
  bool just_woke_ = false;
  bool library_woke_ = false;  // what woke us was not heard yet
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
