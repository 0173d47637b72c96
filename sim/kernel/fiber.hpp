// A simulated thread.
//
// Why this exists: the core's threads must be switched where a strategy says and nowhere else. A fiber is a stack, a
// name, and what it is about to do.
//
// Ownership   The world owns fibers and their stacks, to the end of the run. A fiber is never unwound from outside:
//             one that is not resumed any more is abandoned, and its stack goes back to the pool.
// Threading   One OS thread.
#pragma once

#include <sim/kernel/world.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::sim {

namespace detail {
extern fiber* running_fiber;  // copy of the world's: read in every platform operation and every allocation
}

enum class fiber_state : std::uint8_t { ready, blocked, finished, abandoned };

/// A lock that a fiber holds, for the rank check and the reports.
struct held_lock {
  std::uint16_t rank;
  bool leaf;
  object_id object;
};

class fiber {
 public:
  fiber() = default;
  ~fiber();
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  /// Makes a new thread of this object, which may have been one before. Its stack stays.
  void begin(host& h, std::uint32_t index, std::string_view given_name, std::uint32_t twin);

  host* owner = nullptr;
  std::uint32_t index = 0;
  /// "b/ucx-progress"; two fibers of one host with the same name get "-2", "-3".
  std::string name;
  std::string given_name;
  std::uint32_t twin = 0;  // 2 for "-2"
  fiber_state state = fiber_state::ready;

  // What it does when it runs next.
  op_kind pending = op_kind::start;
  object_id pending_object = 0;

  // Links of the wait list that it is in (mutex, condition variable), if any.
  fiber* next_waiter = nullptr;
  /// Not blocked: would run if its host were not paused. A fiber that waits for a held lock is `blocked`.
  bool wants_to_run() const noexcept { return state == fiber_state::ready; }
  /// Will run again: neither finished nor abandoned.
  bool wants_or_waits() const noexcept { return state == fiber_state::ready || state == fiber_state::blocked; }
  /// Among the entries of the next choice.
  bool enabled = false;
  /// Set by `world::wake`, cleared by a deadline that came first.
  bool woken = false;
  std::uint64_t deadline_event = 0;
  /// The run may end without it (see `world::forgive`).
  bool forgiven = false;

  static constexpr unsigned held_max = 16;
  held_lock held[held_max];
  unsigned held_count = 0;

  std::vector<fiber*> joiners;
  std::vector<std::pair<object_id, void*>> slots;  // by the number of the thread slot

  // Switching.
  void* context = nullptr;
  std::byte* stack_low = nullptr;
  std::size_t stack_bytes = 0;
  unsigned saved_kernel_depth = 0;
  void* exception_state[2] = {nullptr, nullptr};
  void* sanitizer_stack = nullptr;
  void* race_fiber = nullptr;  // ThreadSanitizer's, see race_watch.hpp
  bool race_ignores = false;   // while another one runs
  // The body is destroyed by the fiber itself, when it ran. If it never does, nobody destroys it: what it captured
  // may lie in a region that is gone.
  alignas(std::move_only_function<void()>) std::byte body_storage[sizeof(std::move_only_function<void()>)];
  std::move_only_function<void()>& body() noexcept {
    return *std::launder(reinterpret_cast<std::move_only_function<void()>*>(body_storage));
  }
};

/// What platform primitives may do that others may not.
struct kernel_access {
  /// True on a fiber, outside kernel scope, in a world: platform operations schedule only then.
  static bool scheduling() noexcept { return detail::running_fiber != nullptr && detail::kernel_depth == 0; }
  static world* the_world() noexcept { return detail::the_world; }
  static void set_ready(world& w, fiber& f, bool ready) noexcept {
    const bool enabled = ready && !f.owner->paused_ && f.wants_or_waits();
    if (enabled != f.enabled) change_enabled(w, f);
  }
  /// Lets the strategy choose; returns when the running fiber was chosen. Its pending operation must be set.
  static void reschedule(world& w);
  static void arm_deadline(world& w, fiber& f, std::int64_t deadline_ns);
  static void disarm_deadline(world& w, fiber& f) noexcept;
  /// Violation if the running fiber may not take a lock of this class now.
  static void check_rank(world& w, std::uint16_t rank, bool leaf, const char* name) {
    if (w.running_->held_count != 0) check_rank_against_held(w, rank, leaf, name);
  }
  static void push_lock(world& w, std::uint16_t rank, bool leaf, object_id object) {
    fiber& self = *w.running_;
    if (self.held_count == fiber::held_max) return refuse_lock(w);
    self.held[self.held_count++] = {rank, leaf, object};
  }
  static void pop_lock(world& w, object_id object) {
    fiber& self = *w.running_;
    if (self.held_count != 0 && self.held[self.held_count - 1].object == object)
      --self.held_count;
    else
      pop_lock_out_of_order(w, object);
  }
  static void run_quiet_points(world& w, host& h, std::uint16_t rank);
  static bool has_quiet_points(world& w) noexcept;
  static fiber& spawn(host& h, std::string_view name, std::move_only_function<void()>&& body);

 private:
  static void change_enabled(world& w, fiber& f) noexcept;
  static void refuse_lock(world& w);
  static void pop_lock_out_of_order(world& w, object_id object);
  static void check_rank_against_held(world& w, std::uint16_t rank, bool leaf, const char* name);
};

}  // namespace holdfast::sim
