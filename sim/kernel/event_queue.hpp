// What is going to happen in a world, in order of time and, at one instant, of arrival.
//
// Why this exists: large worlds live in this queue. A heap of small entries with four children each touches half the
// cache lines of a binary one, and what an event does stays where it was put until it has acted.
//
// Ownership   Owns what events do, until they acted, were cancelled, or the queue is cleared.
// Units       Nanoseconds since the start of the run.
// Threading   One OS thread, in kernel scope.
// Failure     More than 2^24 events at once, or 2^40 in a run, end the process with a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace holdfast::sim {

class event_queue {
 public:
  using action = std::move_only_function<void()>;

  event_queue() = default;
  event_queue(const event_queue&) = delete;
  event_queue& operator=(const event_queue&) = delete;

  /// The answer names the event; it is never 0.
  std::uint64_t add(std::int64_t time_ns, action&& what);
  /// False: it acts, has acted, or was cancelled.
  bool cancel(std::uint64_t event);
  /// Events that are due and not cancelled.
  std::uint64_t live() const noexcept { return live_; }
  /// Takes the next event out, for `act`; `live` must not be 0. From here on it cannot be cancelled.
  struct due {
    std::int64_t time_ns;
    std::uint32_t slot;
  };
  due take();
  /// When the next one is due; `live` must not be 0.
  std::int64_t next_ns();
  /// Lets a taken event act. It may add and cancel others, and need not return.
  void act(const due& event);
  /// Forgets every event, those included that never returned. The room stays.
  void clear();

 private:
  // The name of an event: its sequence number, and in the low bits the slot that keeps what it does.
  static constexpr unsigned slot_bits = 24;
  static constexpr std::uint64_t slot_mask = (std::uint64_t{1} << slot_bits) - 1;
  struct entry {
    std::int64_t time_ns;
    std::uint64_t event;
  };
  struct alignas(64) slot {
    std::uint64_t event = 0;  // 0: nothing, or it acts
    action what;
  };
  static constexpr unsigned chunk_bits = 6;
  slot& at(std::uint32_t number) noexcept { return chunks_[number >> chunk_bits][number & ((1u << chunk_bits) - 1)]; }
  static bool before(const entry& a, const entry& b) noexcept;
  std::uint32_t take_slot();
  entry pop() noexcept;

  std::vector<entry> heap_;
  std::vector<std::unique_ptr<slot[]>> chunks_;  // slots stay where they are
  std::uint32_t used_slots_ = 0;
  std::vector<std::uint32_t> free_slots_;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t live_ = 0;
};

}  // namespace holdfast::sim
