// Private to the kernel: what a world keeps, and what moves it.
//
// Why this exists: a world is set up and observed in one file, scheduled in another, and its events are kept in a third.
//
// Ownership   One state is kept between worlds; a world borrows it for its life.
// Threading   One OS thread, in kernel scope. Failure: none of its own.
#pragma once

#include <sim/kernel/event_queue.hpp>
#include <sim/kernel/fiber.hpp>
#include <sim/kernel/ready_set.hpp>
#include <sim/kernel/world.hpp>

#include <boost/context/detail/fcontext.hpp>

#define XXH_STATIC_LINKING_ONLY  // for the size of XXH3_state_t; the functions come from the library
#include <xxhash.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::sim {

struct quiet_probe {
  host* where;
  std::uint16_t rank;
  std::function<void()> probe;
};

struct object_record {
  const char* kind;
  std::uint32_t number;         // among its kind
  const host* maker = nullptr;  // whose process it lies in; null: nobody's
  std::uint32_t life = 0;       // of the maker
};
// One text may stand at several addresses: each address is compared by text once, and then known.
struct object_kind {
  const char* address;
  std::uint32_t counter;  // place among the counters of texts
};

// Kept between worlds: a campaign makes tens of thousands of small worlds a second, and most of a small world's cost
// would be giving memory back and asking for it again.
struct world::state {
  std::vector<std::unique_ptr<fiber>> fibers;
  std::vector<std::unique_ptr<fiber>> spare_fibers;  // with their stacks
  std::vector<std::unique_ptr<host>> spare_hosts;
  std::vector<std::unique_ptr<host>> no_hosts;  // empty: capacity for the next world's
  ready_set ready;
  std::uint32_t unfinished = 0;
  void* main_context = nullptr;
  void* exceptions_handled = nullptr;  // the C++ runtime's, of the thread that runs the world

  event_queue events;
  std::multimap<std::int64_t, event_queue::action> patience;  // who waits until when, see world::at_patience

  // The last steps of a run that makes too many: which fiber repeats what.
  struct repeated {
    std::uint32_t fiber;
    op_kind op;
    object_id object;
    std::uint64_t times;
  };
  std::vector<repeated> last_steps;
  std::uint64_t steps_watched = 0;

  std::vector<std::uint8_t> choices;
  std::map<std::string, random_stream, std::less<>> streams;
  std::vector<object_record> objects{{"", 0}};
  std::vector<object_kind> object_kinds;
  std::vector<std::uint32_t> object_counters;  // the last number of each kind
  object_watch* watch = nullptr;
  causal_order* order = nullptr;
  bool searched = true;

  std::vector<std::vector<check*>> subscribers;  // by dense kind
  std::vector<std::size_t> subscribed;           // kinds with subscribers
  std::vector<check*> checks;
  std::vector<listener*> listeners;
  std::vector<quiet_probe> probes;
  std::map<std::string, std::int64_t, std::less<>> handles;
  std::function<void(const char*, unsigned, void*)> suspension_hook;

  XXH3_state_t hash;

  // The enabled set at the choice being made, for labels.
  choice_point at_choice{};

#if defined(HOLDFAST_ASAN)
  const void* main_stack = nullptr;
  std::size_t main_stack_bytes = 0;
  void* main_fake_stack = nullptr;
#endif
  void* main_exception_state[2] = {nullptr, nullptr};

  std::uint32_t counter_of(const char* kind);

  static std::unique_ptr<state> take();
  static void keep(std::unique_ptr<state> used);

 private:
  static std::unique_ptr<state>& spare();
  // As new, but for capacities.
  void recycle();
};

/// Runs fibers in turn.
struct switcher {
  /// Leaves the running context (fiber or main) for `to` (null = main). Returns when somebody comes back.
  static void jump(world& w, fiber* from, fiber* to);
  static void landed(world& w, const boost::context::detail::transfer_t& arrived, void* fake) noexcept;
  [[noreturn]] static void entry(boost::context::detail::transfer_t arrived);
  static void finish(world& w, fiber& self);
  /// To whom the strategy chooses; returns when `self` was chosen.
  static void leave(world& w, fiber& self);
  /// Takes the next event and lets it act.
  static void advance_time(world& w);
  /// Whether nothing can happen but that somebody gives up waiting.
  static bool only_patience_is_left(const world& w) noexcept;
  static void let_patience_end(world& w);
  static void count_stall(world& w, std::int64_t duration_ns);
  /// The next fiber to run, or null: the run is over, or stopped.
  static fiber* pick(world& w);
  [[gnu::cold]] static void refuse_choice(world& w, std::uint32_t index);
  [[gnu::cold]] static void report_no_end(world& w);
  /// A step beyond the bound: counted for a while, then reported.
  [[gnu::cold]] static void watch_livelock(world& w, const fiber* self);
  static void record(world::state& s, std::uint32_t index);
};

}  // namespace holdfast::sim
