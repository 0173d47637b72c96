// Events of a world: adding, cancelling, and letting time pass to the next one.
#include <sim/kernel/causal_order.hpp>
#include <sim/kernel/world_state.hpp>

#include <algorithm>

namespace holdfast::sim {

std::uint64_t world::at(std::int64_t time_ns, std::move_only_function<void()> body) {
  kernel_scope kernel;
  touch();
  return state_->events.add(std::max(time_ns, now_ns_), std::move(body));
}

bool world::cancel_event(std::uint64_t event) {
  kernel_scope kernel;
  touch();
  return state_->events.cancel(event);
}

void switcher::advance_time(world& w) {
  auto& s = *w.state_;
  if (s.order != nullptr) s.order->passed();
  if (!s.patience.empty() && w.waiting_excused_ && s.patience.begin()->first <= s.events.next_ns())
    return let_patience_end(w);
  const event_queue::due due = s.events.take();
  if (due.time_ns > w.now_ns_) {
    if (s.ready.count() != 0) count_stall(w, due.time_ns - w.now_ns_);
    w.now_ns_ = due.time_ns;
  }
  s.events.act(due);
}

void world::at_patience(std::int64_t time_ns, std::move_only_function<void()> body) {
  kernel_scope kernel;
  touch();
  state_->patience.emplace(std::max(time_ns, now_ns_), std::move(body));
}

bool switcher::only_patience_is_left(const world& w) noexcept {
  const auto& s = *w.state_;
  return !s.patience.empty() && w.waiting_excused_ && s.unfinished != 0 && s.ready.count() == 0 && s.events.live() == 0;
}

void switcher::let_patience_end(world& w) {
  auto& s = *w.state_;
  const std::int64_t time_ns = s.patience.begin()->first;
  event_queue::action what = std::move(s.patience.begin()->second);
  s.patience.erase(s.patience.begin());
  if (time_ns > w.now_ns_) {
    if (s.ready.count() != 0) count_stall(w, time_ns - w.now_ns_);
    w.now_ns_ = time_ns;
  }
  what();
}

// Time passes although fibers could run: every promise of their hosts about time is extended by as much.
void switcher::count_stall(world& w, std::int64_t duration_ns) {
  for (auto& f : w.state_->fibers)
    if (f->enabled) f->owner->marked_ = true;
  for (auto& h : w.hosts_)
    if (h->marked_) {
      h->stalled_ns_ += duration_ns;
      h->marked_ = false;
    }
}

}  // namespace holdfast::sim
