// Private to the kernel: what a world keeps, and what moves it.
//
// Why this exists: a world is set up and observed in one file, scheduled in another, and its events are kept in a third.
//
// Ownership   One state is kept between worlds; a world borrows it for its life.
// Threading   One OS thread, in kernel scope. Failure: none of its own.
#pragma once

#include <sim/kernel/fiber.hpp>
#include <sim/kernel/world.hpp>

#include <boost/context/detail/fcontext.hpp>

#define XXH_STATIC_LINKING_ONLY  // for the size of XXH3_state_t; the functions come from the library
#include <xxhash.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::sim {

struct queued_event {
  std::int64_t time_ns;
  std::uint64_t sequence;
  std::uint32_t slot;
};
struct event_slot {
  std::uint64_t sequence = 0;  // 0 = free
  std::move_only_function<void()> body;
};

struct quiet_probe {
  host* where;
  std::uint16_t rank;
  std::function<void()> probe;
};

struct object_record {
  const char* kind;
  std::uint32_t number;  // among its kind
};

// Kept between worlds: a campaign makes tens of thousands of small worlds a second, and most of a small world's cost
// would be giving memory back and asking for it again.
struct world::state {
  std::vector<std::unique_ptr<fiber>> fibers;
  std::vector<std::unique_ptr<fiber>> spare_fibers;  // with their stacks
  std::vector<std::unique_ptr<host>> spare_hosts;
  std::vector<std::unique_ptr<host>> no_hosts;  // empty: capacity for the next world's
  std::vector<std::uint64_t> ready_bits;
  std::uint32_t ready_count = 0;
  std::uint32_t unfinished = 0;
  void* main_context = nullptr;

  std::vector<queued_event> queue;  // heap
  std::vector<event_slot> slots;
  std::vector<std::uint32_t> free_slots;
  std::uint64_t next_sequence = 1;
  std::uint64_t live_events = 0;

  std::vector<std::uint8_t> choices;
  std::map<std::string, random_stream, std::less<>> streams;
  std::vector<object_record> objects{{"", 0}};
  std::vector<object_record> object_kinds;  // the last number of each kind

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
  /// Takes the next event and lets it act.
  static void advance_time(world& w);
  /// The next fiber to run, or null: the run is over, or stopped.
  static fiber* pick(world& w);
  static void record(world::state& s, std::uint32_t index);

  static bool is_ready(const world::state& s, std::uint32_t index) noexcept {
    return ((s.ready_bits[index / 64] >> (index % 64)) & 1) != 0;
  }
  // Inline, because the baseline x86-64 has no instruction for it and a call costs more than the choice.
  static constexpr std::uint32_t count_bits(std::uint64_t bits) noexcept {
    bits -= (bits >> 1) & 0x5555555555555555u;
    bits = (bits & 0x3333333333333333u) + ((bits >> 2) & 0x3333333333333333u);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return static_cast<std::uint32_t>((bits * 0x0101010101010101u) >> 56);
  }
  // Position of fiber `index` among the ready ones.
  static std::uint32_t rank_of(const world::state& s, std::uint32_t index) noexcept {
    std::uint32_t rank = 0;
    for (std::uint32_t word = 0; word < index / 64; ++word)
      rank += count_bits(s.ready_bits[word]);
    return rank + count_bits(s.ready_bits[index / 64] & ((std::uint64_t{1} << (index % 64)) - 1));
  }
  // Fiber index of the ready fiber at position `rank`.
  static std::uint32_t select(const world::state& s, std::uint32_t rank) noexcept {
    std::uint32_t word = 0;
    for (;; ++word) {
      const std::uint32_t here = count_bits(s.ready_bits[word]);
      if (rank < here) break;
      rank -= here;
    }
    std::uint64_t bits = s.ready_bits[word];
    for (; rank != 0; --rank) bits &= bits - 1;
    return word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
  }
};

}  // namespace holdfast::sim
