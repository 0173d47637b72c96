// The end of a pool: refuse, drain, close, sweep, report.
//
// Why this exists: at the end every registration has to be given back, or named. The steps share one deadline, none
// waits for a caller's buffer, and memory that a fetch of ours is still writing keeps its registration, deadline or
// not: it is counted as not submitted, and is done after the worker's destruction (spec/pinned-memory 7.15).
//
// Ownership   The pool's. It runs once; whoever asks later gets the same report.
// Units       Absolute deadlines; bytes; counts.
// Threading   Any thread.
// Failure     The report says what is left. If the executor is stopped, nothing is waited for.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/gate.hpp>
#include <holdfast/base/intrusive_ptr.hpp>
#include <holdfast/base/task.hpp>
#include <holdfast/pinned/arena.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/clock.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::pinned {

class pool_core;

/// Where everything is. Each arena that was swept is in exactly one of the first five numbers.
struct shutdown_report {
  std::uint64_t arenas_confirmed = 0;
  std::uint64_t arenas_unknown = 0;    // the unmap was answered, but not confirmed
  std::uint64_t arenas_timed_out = 0;  // submitted, not answered by the deadline
  std::uint64_t arenas_refused = 0;
  std::uint64_t arenas_not_submitted = 0;  // a transfer may still write
  std::uint64_t spans_quarantined = 0;
  std::uint64_t transfers_outstanding = 0;
  std::uint64_t maps_outstanding = 0;
  std::uint64_t tickets_abandoned = 0;
  std::uint64_t buffers_held = 0;  // by callers, who keep them as long as they like
  std::uint64_t bytes_charged = 0;

  std::uint64_t arenas_unconfirmed() const noexcept { return arenas_unknown + arenas_timed_out + arenas_refused; }
  /// Nothing is registered, and nothing of ours is going on.
  bool clean() const noexcept;
  std::string to_json() const;
};

class shutdown_process {
 public:
  shutdown_process(pool_core& pool, std::uint64_t answers_gate_id, std::uint64_t finished_gate_id) noexcept;

  /// Begins, if nobody did.
  void begin(platform::time_point deadline) noexcept;
  /// The same, in the call itself: what is not there at once is counted as left.
  void begin_without_waiting() noexcept;
  /// Complete if `finished`, otherwise empty.
  shutdown_report report_so_far() const noexcept { return finished() ? report_ : shutdown_report(); }
  bool begun() const noexcept { return begun_.load(std::memory_order_acquire); }
  /// Whether the report is there.
  bool finished() const noexcept { return finished_flag_.load(std::memory_order_acquire); }
  /// The witness was shown and everything settled.
  void set_released() noexcept { released_.store(true, std::memory_order_release); }
  /// "open", "closing", "swept", "released".
  std::string_view state_name() const noexcept;
  /// Waits for the report; cancelling gives up the notification only.
  static task<result<shutdown_report>> wait(task_context context, intrusive_ptr<pool_core> pool);

 private:
  /// The arenas of the sweep, each kept by a share.
  class swept_arenas {
   public:
    swept_arenas() noexcept = default;
    explicit swept_arenas(arena* first) noexcept : first_(first) {}
    swept_arenas(swept_arenas&& other) noexcept;
    swept_arenas& operator=(swept_arenas&&) = delete;
    ~swept_arenas();
    arena* first() const noexcept { return first_; }

   private:
    arena* first_ = nullptr;
  };

  static task<void> run(task_context context, intrusive_ptr<pool_core> pool, platform::time_point deadline);
  void run_without_waiting(platform::time_point deadline) noexcept;

  void refuse_new_work(platform::time_point deadline) noexcept;
  platform::time_point drain_cut(platform::time_point deadline) const noexcept;
  void close_pool(bool drained, platform::time_point deadline) noexcept;
  swept_arenas sweep(platform::time_point deadline) noexcept;
  void report(const swept_arenas& swept, platform::time_point deadline) noexcept;
  void classify(arena& one) noexcept;

  pool_core& pool_;
  platform::atomic<bool> begun_{false};
  platform::atomic<bool> finished_flag_{false};
  platform::atomic<bool> released_{false};
  gate answers_;          // one entry for each arena whose unmap is waited for
  gate finished_;         // one entry: the process itself
  gate::ticket running_;  // that entry, until `run` has it; destroyed before its gate
  shutdown_report report_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
