// Events: what is going to happen, in order of time and, at one instant, of the calls of `at`.
#include <sim/kernel/world_state.hpp>

#include <algorithm>

namespace holdfast::sim {

namespace {

struct later {
  bool operator()(const queued_event& a, const queued_event& b) const noexcept {
    return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.sequence > b.sequence;
  }
};

}  // namespace

std::uint64_t world::at(std::int64_t time_ns, std::move_only_function<void()> body) {
  kernel_scope kernel;
  auto& s = *state_;
  std::uint32_t slot;
  if (!s.free_slots.empty()) {
    slot = s.free_slots.back();
    s.free_slots.pop_back();
  } else {
    slot = static_cast<std::uint32_t>(s.slots.size());
    s.slots.emplace_back();
  }
  const std::uint64_t sequence = s.next_sequence++;
  s.slots[slot].sequence = sequence;
  s.slots[slot].body = std::move(body);
  s.queue.push_back({std::max(time_ns, now_ns_), sequence, slot});
  std::push_heap(s.queue.begin(), s.queue.end(), later{});
  ++s.live_events;
  return (sequence << 24) | slot;
}

bool world::cancel_event(std::uint64_t event) {
  kernel_scope kernel;
  auto& s = *state_;
  const auto slot = static_cast<std::uint32_t>(event & 0xffffff);
  const std::uint64_t sequence = event >> 24;
  if (event == 0 || slot >= s.slots.size() || s.slots[slot].sequence != sequence) return false;
  s.slots[slot].sequence = 0;
  s.slots[slot].body = nullptr;
  s.free_slots.push_back(slot);
  --s.live_events;
  return true;
}

void switcher::advance_time(world& w) {
  auto& s = *w.state_;
  while (true) {
    std::pop_heap(s.queue.begin(), s.queue.end(), later{});
    const queued_event due = s.queue.back();
    s.queue.pop_back();
    event_slot& slot = s.slots[due.slot];
    if (slot.sequence != due.sequence) {  // cancelled
      if (s.queue.empty()) return;
      continue;
    }
    if (due.time_ns > w.now_ns_) {
      if (s.ready_count != 0)
        for (auto& f : s.fibers)
          if (is_ready(s, f->index)) f->owner->marked_ = true;
      for (auto& h : w.hosts_)
        if (h->marked_) {
          h->stalled_ns_ += due.time_ns - w.now_ns_;
          h->marked_ = false;
        }
      w.now_ns_ = due.time_ns;
    }
    auto body = std::move(slot.body);
    slot.body = nullptr;
    slot.sequence = 0;
    s.free_slots.push_back(due.slot);
    --s.live_events;
    body();
    return;
  }
}

}  // namespace holdfast::sim
