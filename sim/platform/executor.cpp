#include <holdfast/platform/executor.hpp>

#include <sim/platform/side.hpp>

#include <string>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::platform {

using sim::fiber;
using sim::kernel_access;
using sim::kernel_scope;
using sim::op_kind;
using sim::world;

// Lives in the host's heap and links only what callers bring, so that kernel code (a timer that fires) allocates
// nothing on its behalf. An event of an earlier life of the host does not act.
struct executor_pool::state {
  sim::host& machine;
  world& w;
  sim::object_id object;
  work_queue queue;
  timer_item* armed = nullptr;
  bool stopped = false;
  struct worker {
    fiber* self = nullptr;
    bool idle = false;
  };
  std::vector<worker> workers;

  void enqueue(work_item& item) noexcept {
    queue.push(item);
    for (worker& each : workers)
      if (each.idle) {
        each.idle = false;
        w.wake(*each.self);
        return;
      }
  }
  void unlink(timer_item& item) noexcept {
    if (item.previous_armed != nullptr)
      item.previous_armed->next_armed = item.next_armed;
    else
      armed = item.next_armed;
    if (item.next_armed != nullptr) item.next_armed->previous_armed = item.previous_armed;
    item.event = 0;
    item.next_armed = item.previous_armed = nullptr;
  }
  bool remove_from_queue(work_item& item) noexcept {
    work_queue kept;
    bool found = false;
    while (work_item* const each = queue.pop()) {
      if (each == &item)
        found = true;
      else
        kept.push(*each);
    }
    queue = kept;
    return found;
  }
  void work(std::size_t index) {
    w.touch(object);
    for (;;) {
      work_item* const item = queue.pop();
      if (item == nullptr) {
        if (stopped) return;
        workers[index].idle = true;
        w.block(op_kind::take, object, INT64_MAX);
        workers[index].idle = false;
        continue;
      }
      sim::race::acquire(this);
      item->run();
      if (w.locks_held_by_running_fiber() != 0) w.violate("lock held", "work of an executor ended with a lock held");
      w.point(op_kind::take, object);
    }
  }
};

executor_pool::executor_pool(sim::host& where, unsigned threads)
    : state_(new state{where, where.owner(), where.owner().new_object("executor"), {}, nullptr, false, {}}) {
  if (sim::scheduling_world() == nullptr) sim::misuse("an executor was made outside any fiber");
  state_->workers.resize(threads);
  for (unsigned i = 0; i < threads; ++i) {
    state* const s = state_;
    char name[24];
    std::snprintf(name, sizeof(name), "exec-%u", i);
    s->workers[i].self = &where.spawn(name, [s, i] { s->work(i); });
  }
}

executor_pool::~executor_pool() {
  stop();
  delete state_;
  shutdown();
  destroy();
}

void executor_pool::stop() noexcept {
  state& s = *state_;
  s.w.point(op_kind::post, s.object);
  if (s.stopped) return;
  s.stopped = true;
  sim::race::synchronize(&s);
  while (s.armed != nullptr) {
    timer_item& item = *s.armed;
    s.w.cancel_event(item.event);
    s.unlink(item);
    item.drop();
  }
  while (work_item* const item = s.queue.pop()) item->drop();
  for (state::worker& each : s.workers) {
    if (each.idle) {
      each.idle = false;
      s.w.wake(*each.self);
    }
  }
  for (state::worker& each : s.workers)
    while (each.self->state != sim::fiber_state::finished) {
      {
        kernel_scope kernel;
        each.self->joiners.push_back(s.w.running());
      }
      s.w.block(op_kind::thread_join, s.object, INT64_MAX);
    }
  for (const state::worker& each : s.workers) sim::race::acquire(each.self);
}

bool executor::post(work_item& item) const noexcept {
  executor_pool::state& s = *pool_->state_;
  s.w.point(op_kind::post, s.object);
  sim::race::release(&s);
  if (s.w.locks_held_by_running_fiber() != 0) {
    kernel_scope kernel;
    s.w.violate("post under a lock",
                s.w.running()->name + " posts while it holds " + s.w.object_name(s.w.running()->held[0].object));
  }
  if (s.stopped) return false;
  s.enqueue(item);
  return true;
}

bool executor::arm(timer_item& item, time_point deadline) const noexcept {
  executor_pool::state& s = *pool_->state_;
  s.w.point(op_kind::timer_arm, s.object);
  sim::race::release(&s);
  if (s.stopped) return false;
  item.deadline = deadline;
  item.next_armed = s.armed;
  item.previous_armed = nullptr;
  if (s.armed != nullptr) s.armed->previous_armed = &item;
  s.armed = &item;
  if (deadline == never) {
    item.event = 0;  // linked for `stop` and `cancel`, never due
    return true;
  }
  // What the world keeps of it must not lie in the host's heap, which a crash takes away.
  kernel_scope kernel;
  item.event = s.w.at(deadline.time_since_epoch().count(), [&s, &item, &machine = s.machine, life = s.machine.life()] {
    if (machine.life() != life) return;
    s.unlink(item);
    s.enqueue(item);
  });
  return true;
}

bool executor::cancel(timer_item& item) const noexcept {
  executor_pool::state& s = *pool_->state_;
  s.w.point(op_kind::timer_cancel, s.object);
  sim::race::synchronize(&s);
  for (timer_item* each = s.armed; each != nullptr; each = each->next_armed)
    if (each == &item) {
      s.w.cancel_event(item.event);
      s.unlink(item);
      return true;
    }
  return s.remove_from_queue(item);
}

boost::asio::execution_context& executor::query(boost::asio::execution::context_t) const noexcept { return *pool_; }

}  // namespace holdfast::inline HOLDFAST_ABI::platform
