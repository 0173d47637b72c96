// One run: virtual time, events, hosts, fibers, choices, and the first wrong thing.
//
// Why this exists: everything that could happen by chance on a real machine is decided here, once, by a strategy,
// and can be decided again.
//
// Ownership   A world owns hosts, fibers and events; it borrows strategy, checks and listeners for its life. One
//             world at a time per process.
// Units       Nanoseconds since the start of the run, signed 64 bits.
// Threading   One OS thread. Functions marked [fiber] are called by code that runs on a fiber, outside kernel
//             scope; [kernel] from kernel scope or from outside any fiber; unmarked ones from anywhere.
// Failure     `violate` records the first violation; the run stops at the next point. Fibers are abandoned,
//             never unwound.
#pragma once

#include <sim/kernel/check.hpp>
#include <sim/kernel/event.hpp>
#include <sim/kernel/host.hpp>
#include <sim/kernel/kernel_scope.hpp>
#include <sim/kernel/random.hpp>
#include <sim/kernel/strategy.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

namespace detail {
extern world* the_world;  // or null
}

/// What a fiber is about to do at a scheduling point.
enum class op_kind : std::uint8_t {
  start,
  resume,
  lock,
  try_lock,
  unlock,
  lock_shared,
  unlock_shared,
  wait,
  notify,
  load,
  store,
  read_modify_write,
  decrement,
  thread_start,
  thread_join,
  post,
  take,
  timer_arm,
  timer_cancel,
  poller_wait,
  poller_wake,
  driver_call,
  yield,
  sleep,
  time,
};
std::string_view name_of(op_kind op) noexcept;

class object_watch;
class causal_order;

/// Number of a synchronization object, in order of creation within a world; 0 = none.
using object_id = std::uint32_t;

struct violation {
  std::string invariant;  // "PM-I5", "deadlock", "lost wakeup", "lock rank", "crash" ...
  std::string message;
  std::uint64_t event = 0;   // number of the last event when it was noticed
  std::uint64_t choice = 0;  // number of choices made by then
};

/// Sees the run as it happens. All calls are in kernel scope.
class listener {
 public:
  virtual ~listener() = default;
  virtual void on_event(world&, const logged_event&) {}
  /// A choice was made. `label` names the chosen entry ("b/ucx-progress lock pinned retiring list#3").
  virtual void on_choice(world&, const choice_point&, std::uint32_t /*index*/) {}
};

struct world_settings {
  std::uint64_t seed = 1;
  std::uint64_t steps_max = 2'000'000;           // scheduling points; more is a livelock
  std::int64_t time_ns_max = 3'600'000'000'000;  // virtual; more is a run that never ends
  bool record_choices = true;                    // index of every choice, in `choices()`
  bool calm_from_start = false;
};

/// `cut`: the strategy wanted no more of it.
enum class run_end : std::uint8_t { clean, violated, cut };

class world {
 public:
  world(const world_settings& settings, strategy& s);
  ~world();
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  static world& current() noexcept { return *detail::the_world; }
  static bool exists() noexcept { return detail::the_world != nullptr; }

  // Setting up --------------------------------------------------------------------------------------------
  host& add_host(std::string_view name);  // [kernel]
  host* find_host(std::string_view name) noexcept;
  const std::vector<std::unique_ptr<host>>& hosts() const noexcept { return hosts_; }
  void attach(check& c);     // borrowed
  void attach(listener& l);  // borrowed
  const world_settings& settings() const noexcept { return settings_; }
  random_stream& stream(std::string_view name);

  /// Runs until every fiber that is not a daemon has finished and no fiber can move without time, or a
  /// violation. Then checks leaks and calls `at_rest`, if clean. [kernel]
  run_end run();

  // Time --------------------------------------------------------------------------------------------------
  std::int64_t now() const noexcept { return now_ns_; }
  /// Calls `body` in kernel scope at `time_ns` (not before now). Order at one instant: order of calls of `at`.
  /// The answer cancels it. [kernel]
  std::uint64_t at(std::int64_t time_ns, std::move_only_function<void()> body);
  /// False: it ran or was cancelled already. [kernel]
  bool cancel_event(std::uint64_t event);
  /// From here on time moves only when nothing is runnable, and faults stop.
  void begin_calm();
  /// Ends the calm that a run may start with.
  void begin_trouble();
  bool calm() const noexcept { return calm_; }
  /// Everything that is owed must have ended when `within_ns` have passed from now: later, while somebody has not
  /// finished, is a violation of "progress". The last call counts.
  void expect_end_within(std::int64_t within_ns);
  /// The run goes through trouble to a calm, or should (see campaign's summary).
  void expect_calm() noexcept { calm_expected_ = true; }
  bool calm_expected() const noexcept { return calm_expected_; }
  bool calm_reached() const noexcept { return expected_from_ns_ >= 0; }
  /// A fault struck that may keep somebody waiting for ever: whoever waits may lose his patience from here on.
  void excuse_waiting() noexcept { waiting_excused_ = true; }
  bool waiting_excused() const noexcept { return waiting_excused_; }
  /// Calls `body` in kernel scope when somebody who waits since long enough gives up: when time passes `time_ns`, or
  /// nothing else can happen and somebody has not finished; in either case only once waiting is excused. Unlike an event
  /// it is no entry of a choice, and a run may end without it. [kernel]
  void at_patience(std::int64_t time_ns, std::move_only_function<void()> body);

  // Scheduling, [fiber] -----------------------------------------------------------------------------------
  /// A scheduling point before `op` on `object`. Returns when this fiber was chosen.
  void point(op_kind op, object_id object = 0);
  /// Sleeps until `wake` or the deadline (max = none). True: woken.
  bool block(op_kind op, object_id object, std::int64_t deadline_ns);
  /// Makes a blocked fiber runnable. No effect on others. [kernel or fiber]
  void wake(fiber& f);
  fiber* running() const noexcept { return running_; }
  host* running_host() const noexcept;
  /// A number for a synchronization object; `kind` must have static storage ("mutex", a lock class's name).
  /// It lies in the process of the running fiber: a use by another one, or by its next life, is an event.
  object_id new_object(const char* kind);
  /// One that stands for something outside of processes.
  object_id new_shared_object(const char* kind);
  /// "pinned retiring list#3": the third object of that kind.
  std::string object_name(object_id id) const;
  /// Whether a search of all schedules branches from here on: what it is not about, setting up and the end, it makes in
  /// one order. Other strategies do not look.
  void search(bool wanted);
  /// What the running fiber is about to do, at a choice point: the operation and its object.
  op_kind pending_operation() const noexcept;
  object_id pending_object() const noexcept;
  /// Tells `watch` of every object and every operation on one, for the rest of the run. Borrowed.
  void watch_objects(object_watch& watch);
  /// Tells `order` of everything that happens, for the rest of the run. Borrowed; to be called when the run begins.
  void order_operations(causal_order& order);
  /// The running fiber reads or changes state of the simulator that no object of its operation stands for.
  void touch();
  /// The operation of the running fiber is one on this object, too.
  void touch(object_id object);
  /// Ends the run where it stands: no later choice is asked for, and nothing is judged. For strategies, in `choose`.
  void cut_short() noexcept { cut_ = true; }
  /// Ranked locks that the running fiber holds: 0 is what drivers and callbacks may see.
  unsigned locks_held_by_running_fiber() const noexcept;
  /// Called in kernel scope at each suspension of a task of core: operation, index of the suspension, the task.
  void on_suspension(std::function<void(const char*, unsigned, void*)> hook);
  void suspension(const char* operation, unsigned index, void* task);

  // Observation -------------------------------------------------------------------------------------------
  void log(const holdfast::event_record& record);  // core's, through platform::observe_event
  template <class... Fields>
  void log(host* h, hardware_event id, Fields... fields) {
    logged_event e;
    e.kind = kind_of(id);
    e.field_count = sizeof...(Fields);
    std::uint64_t values[] = {static_cast<std::uint64_t>(fields)..., 0};
    for (unsigned i = 0; i < sizeof...(Fields); ++i) e.fields[i] = values[i];
    log_event(h, e);
  }
  /// xxh3-128 over all events so far, as 32 hexadecimal digits.
  std::string fingerprint() const;
  std::uint64_t event_count() const noexcept { return event_count_; }
  std::uint64_t step_count() const noexcept { return step_count_; }
  std::uint64_t choice_count() const noexcept { return choice_count_; }
  const std::vector<std::uint8_t>& choices() const noexcept;  // indices, LEB128
  /// Label of entry `index` at the current choice point; valid inside `listener::on_choice` and `strategy::choose`.
  std::string label(std::uint32_t index) const;
  /// The fiber that entry `index` of the current choice point stands for, below `choice_point::fibers`; valid as `label`.
  const fiber& fiber_at(std::uint32_t index) const noexcept;
  /// 32-bit check of the labels of the whole enabled set; valid as `label`.
  std::uint32_t enabled_check() const;

  /// Records the first violation; later ones are ignored. The run stops at the next point.
  void violate(std::string_view invariant, std::string message);
  /// As `violate`, and leaves the current fiber for good.
  [[noreturn]] void violate_and_stop(std::string_view invariant, std::string message);
  const std::optional<violation>& violated() const noexcept { return violation_; }

  /// The run may end although `f` has not finished: a thread that is stuck inside a driver, given up on purpose.
  void forgive(fiber& f);

  /// Handles of simulated hardware and drivers that must be closed by the end of a clean run: +1, -1.
  void count_handle(std::string_view kind, int change);

  /// State that other rooms keep for one run (fabric, fault plan), by a key that is the address of a static.
  /// Destroyed with the world, before its hosts.
  template <class T>
  T& attachment(const void* key, auto make) {
    auto& slot = attachments_[key];
    if (!slot) slot = std::shared_ptr<void>(std::shared_ptr<T>(make()));
    return *static_cast<T*>(slot.get());
  }

  /// Runs `probe` in observer mode whenever a lock of the class with `rank` is released on `h`.
  void at_quiet_point(host& h, std::uint16_t rank, std::function<void()> probe);

 private:
  friend class host;
  friend class fiber;
  friend struct kernel_access;
  friend struct switcher;
  void log_event(host* h, logged_event& e);
  void report_stuck();
  std::string describe_unfinished(bool& asleep) const;
  struct state;

  // What every scheduling point reads stands first.
  strategy& strategy_;
  fiber* running_ = nullptr;
  std::int64_t now_ns_ = 0;
  std::uint64_t step_count_ = 0;
  std::uint64_t choice_count_ = 0;
  std::uint64_t event_count_ = 0;
  bool calm_ = false;
  bool cut_ = false;
  bool calm_expected_ = false;
  bool waiting_excused_ = false;
  std::int64_t end_by_ns_;              // later is too late: `time_ns_max`, or what `expect_end_within` said
  std::int64_t expected_from_ns_ = -1;  // when it was said; -1: never
  world_settings settings_;
  std::vector<std::unique_ptr<host>> hosts_;
  std::optional<violation> violation_;
  std::unique_ptr<state> state_;
  // Keyed by address but never iterated.
  std::map<const void*, std::shared_ptr<void>> attachments_;
};

}  // namespace holdfast::sim
