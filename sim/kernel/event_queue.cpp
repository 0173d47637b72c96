#include <sim/kernel/event_queue.hpp>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace holdfast::sim {

namespace {
constexpr std::size_t children = 4;
}  // namespace

// Without branches: which of two events comes first is as good as random.
inline bool event_queue::before(const entry& a, const entry& b) noexcept {
  __extension__ typedef unsigned __int128 wide;
  // Times are not negative.
  const wide first = (static_cast<wide>(static_cast<std::uint64_t>(a.time_ns)) << 64) | a.event;
  const wide second = (static_cast<wide>(static_cast<std::uint64_t>(b.time_ns)) << 64) | b.event;
  return first < second;
}

std::uint32_t event_queue::take_slot() {
  if (!free_slots_.empty()) {
    const std::uint32_t number = free_slots_.back();
    free_slots_.pop_back();
    return number;
  }
  if (used_slots_ == slot_mask || next_sequence_ >> (64 - slot_bits) != 0) {
    std::fputs("holdfast-sim: too many events in one world\n", stderr);
    std::abort();
  }
  if (used_slots_ >> chunk_bits == chunks_.size())
    chunks_.push_back(std::make_unique<slot[]>(std::size_t{1} << chunk_bits));
  return used_slots_++;
}

std::uint64_t event_queue::add(std::int64_t time_ns, action&& what) {
  const std::uint32_t number = take_slot();
  const std::uint64_t event = (next_sequence_++ << slot_bits) | number;
  slot& s = at(number);
  s.event = event;
  s.what = std::move(what);
  ++live_;
  const entry added{time_ns, event};
  heap_.push_back(added);
  std::size_t hole = heap_.size() - 1;
  while (hole != 0) {
    const std::size_t parent = (hole - 1) / children;
    if (!before(added, heap_[parent])) break;
    heap_[hole] = heap_[parent];
    hole = parent;
  }
  heap_[hole] = added;
  return event;
}

bool event_queue::cancel(std::uint64_t event) {
  const auto number = static_cast<std::uint32_t>(event & slot_mask);
  if (event == 0 || number >= used_slots_) return false;
  slot& s = at(number);
  if (s.event != event) return false;
  s.event = 0;
  s.what = nullptr;
  free_slots_.push_back(number);
  --live_;
  return true;
}

event_queue::entry event_queue::pop() noexcept {
  const entry top = heap_.front();
  const entry last = heap_.back();
  heap_.pop_back();
  const std::size_t size = heap_.size();
  if (size == 0) return top;
  entry* const heap = heap_.data();
  std::size_t hole = 0;
  for (;;) {
    const std::size_t first = hole * children + 1;
    if (first >= size) break;
    std::size_t least = first;
    if (first + children <= size) {
      const std::size_t a = first + (before(heap[first + 1], heap[first]) ? 1 : 0);
      const std::size_t b = first + 2 + (before(heap[first + 3], heap[first + 2]) ? 1 : 0);
      least = before(heap[b], heap[a]) ? b : a;
    } else {
      for (std::size_t child = first + 1; child < size; ++child)
        if (before(heap[child], heap[least])) least = child;
    }
    heap[hole] = heap[least];
    hole = least;
  }
  while (hole != 0) {
    const std::size_t parent = (hole - 1) / children;
    if (!before(last, heap[parent])) break;
    heap[hole] = heap[parent];
    hole = parent;
  }
  heap[hole] = last;
  return top;
}

event_queue::due event_queue::take() {
  for (;;) {
    const entry next = pop();
    const auto number = static_cast<std::uint32_t>(next.event & slot_mask);
    slot& s = at(number);
    if (s.event != next.event) continue;  // cancelled
    s.event = 0;
    --live_;
    // The one after it is likely to be needed soon, and to lie far away.
    if (!heap_.empty()) __builtin_prefetch(&at(static_cast<std::uint32_t>(heap_.front().event & slot_mask)));
    return {next.time_ns, number};
  }
}

std::int64_t event_queue::next_ns() {
  while (at(static_cast<std::uint32_t>(heap_.front().event & slot_mask)).event != heap_.front().event) pop();
  return heap_.front().time_ns;
}

void event_queue::act(const due& event) {
  slot& s = at(event.slot);
  s.what();
  s.what = nullptr;
  free_slots_.push_back(event.slot);
}

void event_queue::clear() {
  for (std::uint32_t number = 0; number < used_slots_; ++number) {
    slot& s = at(number);
    s.event = 0;
    s.what = nullptr;
  }
  heap_.clear();
  used_slots_ = 0;
  free_slots_.clear();
  next_sequence_ = 1;
  live_ = 0;
}

}  // namespace holdfast::sim
