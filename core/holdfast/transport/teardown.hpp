// The end of a transport: connections, worker, what no callback will end, registrations, context; and the proof.
//
// Why this exists: memory that a device may reach is given back only on evidence. The evidence is made here and
// nowhere else, after the destructions of worker and context returned; and if they do not return, there is none
// (spec/transport 7.13).
//
// Ownership   Part of the engine. Completions are owned until they are called.
// Units       Absolute deadlines.
// Threading   `begin` from any thread; `start`, `step` on the progress thread; `context_closed` on the registration
//             thread; completions on the executor. One word decides between the end and the deadline.
// Failure     The deadline passed: hung. No witness is made, and nothing is swept unless the worker's destruction
//             returns later; threads and handles are left as they are, for ever if need be.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/completion.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/base/witness.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/executor.hpp>
#include <holdfast/transport/registration.hpp>
#include <holdfast/transport/submission_queue.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::transport {

struct teardown_report {
  /// The deadline came first: worker, context, threads and what they reach are leaked on purpose.
  bool hung = false;
  std::uint64_t swept = 0;          // operations that no callback ended
  std::uint64_t forced = 0;         // endpoints closed by force, over the transport's life
  std::uint64_t parked = 0;         // closes that the library did not end, over the transport's life
  std::uint64_t operations = 0;     // hung: still in the table
  std::uint64_t registrations = 0;  // hung: still registered
  std::uint64_t unconfirmed = 0;    // unmaps without confirmation, covered by the end of the context
};

struct teardown_result {
  teardown_report report;
  /// Only the first caller gets it, and only if both destructions returned.
  std::optional<witness> proof;
};

struct engine;

class teardown final : public registration::listener {
 public:
  using answer = result<teardown_result>;
  explicit teardown(engine& of) noexcept : of_(of), timer_(*this), delivery_(*this), start_(*this) {}

  /// Starts the teardown, or joins the one that runs: its deadline stands.
  void begin(platform::time_point deadline, std::optional<completion<answer>> told) noexcept;
  /// The library failed for good: connections and worker end now, on the progress thread. Registrations and context
  /// stay until the owner begins his teardown: until then he may hand out memory that he believes to be registered.
  void begin_alone() noexcept;
  /// Instead of a teardown, after a start-up that failed: nobody is told.
  void skip() noexcept;

  // Progress thread.
  bool step(platform::time_point now) noexcept;
  platform::time_point nearest_deadline() const noexcept;
  bool finished() const noexcept { return phase_ == phase::handed_over; }

  /// Whether worker and context are known to be gone.
  bool gone() const noexcept { return verdict_.load(std::memory_order_acquire) == verdict::gone; }
  bool hung() const noexcept { return verdict_.load(std::memory_order_acquire) == verdict::hung; }
  bool begun() noexcept;
  /// Whether anything ends: then nothing new is registered.
  bool ends() noexcept;

  void context_closed(std::uint64_t unconfirmed) noexcept override;

  /// The owner goes. True: everything ended and was answered, the engine may be deleted. False: it is deleted by the
  /// answer that is still on its way, or stays for ever; nobody is told any more.
  bool owner_leaves() noexcept;

 private:
  enum class verdict : std::uint8_t { open, gone, hung };
  enum class phase : std::uint8_t { idle, closing, handed_over };

  // The executor's and the queue's handles of a teardown.
  struct deadline_timer final : platform::timer_item {
    explicit deadline_timer(teardown& t) noexcept : of(t) {}
    void run() noexcept override { of.deadline_passed(); }
    void drop() noexcept override { of.timer_dropped(); }
    teardown& of;
  };
  struct delivery final : work_item {
    explicit delivery(teardown& t) noexcept : of(t) {}
    void run() noexcept override { of.deliver(true); }
    void drop() noexcept override { of.deliver(false); }
    teardown& of;
  };
  struct start_command final : command {
    explicit start_command(teardown& t) noexcept : of(t) {}
    void execute() noexcept override { of.start(); }
    void refuse() noexcept override {}
    teardown& of;
  };

  void start() noexcept;
  void enter_closing(platform::time_point deadline) noexcept;
  void share_out(platform::time_point now, platform::time_point deadline) noexcept;
  void collect_callbacks(platform::time_point now) noexcept;
  void destroy_worker() noexcept;
  void deadline_passed() noexcept;
  void timer_dropped() noexcept;
  void deliver(bool on_executor) noexcept;
  /// True: the owner left before, so the caller deletes the engine.
  bool answer_all(teardown_report report, std::optional<witness> proof) noexcept;

  engine& of_;
  platform::atomic<verdict> verdict_{verdict::open};
  /// Worker and context went after all, after the deadline.
  platform::atomic<bool> ended_late_{false};

  // Progress thread.
  phase phase_ = phase::idle;
  bool forced_ = false;
  platform::time_point drain_until_ = platform::never;
  platform::time_point close_until_ = platform::never;

  platform::mutex mutex_{lock_ranks::transport_lifecycle};
  bool begun_ HOLDFAST_GUARDED_BY(mutex_) = false;
  bool alone_ HOLDFAST_GUARDED_BY(mutex_) = false;
  bool worker_ended_ HOLDFAST_GUARDED_BY(mutex_) = false;
  bool silent_ HOLDFAST_GUARDED_BY(mutex_) = false;
  bool answered_ HOLDFAST_GUARDED_BY(mutex_) = false;
  bool ownerless_ HOLDFAST_GUARDED_BY(mutex_) = false;
  platform::time_point deadline_ HOLDFAST_GUARDED_BY(mutex_) = platform::never;
  teardown_report report_ HOLDFAST_GUARDED_BY(mutex_);
  std::vector<completion<answer>> told_ HOLDFAST_GUARDED_BY(mutex_);
  /// The owner began after the transport had begun alone: his deadline counts.
  platform::atomic<bool> owner_joined_{false};
  // Written before the start command is pushed and before the verdict can fall.
  platform::atomic<bool> armed_{false};

  deadline_timer timer_;
  delivery delivery_;
  start_command start_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
