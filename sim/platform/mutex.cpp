#include <holdfast/platform/mutex.hpp>

#include <holdfast/platform/condition_variable.hpp>

#include <sim/platform/side.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

using sim::fiber;
using sim::fiber_state;
using sim::kernel_access;
using sim::kernel_scope;
using sim::op_kind;
using sim::world;
namespace race = sim::race;

namespace {

// Whoever ended or went down with his host never becomes anything again.
void make_ready(world& w, fiber& f, bool ready) noexcept {
  if (!f.wants_or_waits()) return;
  f.state = ready ? fiber_state::ready : fiber_state::blocked;
  kernel_access::set_ready(w, f, ready);
}

void append(fiber*& list, fiber& f) noexcept {
  f.next_waiter = nullptr;
  fiber** end = &list;
  while (*end != nullptr) end = &(*end)->next_waiter;
  *end = &f;
}

void remove(fiber*& list, fiber& f) noexcept {
  for (fiber** at = &list; *at != nullptr; at = &(*at)->next_waiter)
    if (*at == &f) {
      *at = f.next_waiter;
      f.next_waiter = nullptr;
      return;
    }
}

}  // namespace

// mutex ----------------------------------------------------------------------------------------------------------

mutex::~mutex() {
  if (sim::scheduling_world() != nullptr && (owner_ != nullptr || pending_ != nullptr))
    sim::misuse("a mutex was destroyed while it was held or waited for");
}

std::uint32_t mutex::object() {
  if (object_ == 0) object_ = world::current().new_object(kind_.name);
  return object_;
}

void mutex::append_pending(fiber& f) noexcept {
  append(pending_, f);
  make_ready(world::current(), f, free());
}

// The running fiber is in `pending_`; returns when it was chosen, which needs the mutex to be free, and owns it.
void mutex::wait_for_turn(fiber& self) {
  world& w = world::current();
  kernel_access::reschedule(w);
  remove(pending_, self);
  owner_ = &self;
  race::acquire(this);
  kernel_access::push_lock(w, kind_.rank, kind_.leaf, object_);
  for (fiber* f = pending_; f != nullptr; f = f->next_waiter) make_ready(w, *f, false);
}

void mutex::lock() {
  world* const w = sim::scheduling_world();
  if (w == nullptr) {
    if (!free()) sim::misuse("a check or test took a lock that is held");
    held_outside_ = true;
    return;
  }
  fiber& self = *w->running();
  if (owner_ == &self) w->violate_and_stop("double lock", self.name + " locks " + kind_.name + " twice");
  self.pending = op_kind::lock;
  self.pending_object = object();
  kernel_access::check_rank(*w, kind_.rank, kind_.leaf, kind_.name);
  append_pending(self);
  wait_for_turn(self);
}

bool mutex::try_lock() {
  world* const w = sim::scheduling_world();
  if (w == nullptr) {
    if (!free()) return false;
    return held_outside_ = true;
  }
  w->point(op_kind::try_lock, object());
  if (!free()) return false;
  owner_ = w->running();
  race::acquire(this);
  kernel_access::push_lock(*w, kind_.rank, kind_.leaf, object_);
  for (fiber* f = pending_; f != nullptr; f = f->next_waiter) make_ready(*w, *f, false);
  return true;
}

void mutex::release() {
  world& w = world::current();
  if (owner_ != w.running())
    w.violate("lock misuse", w.running()->name + " unlocks " + kind_.name + ", which it does not own");
  owner_ = nullptr;
  race::release(this);
  kernel_access::pop_lock(w, object_);
  if (kernel_access::has_quiet_points(w)) kernel_access::run_quiet_points(w, *w.running()->owner, kind_.rank);
  for (fiber* f = pending_; f != nullptr; f = f->next_waiter) make_ready(w, *f, true);
}

void mutex::unlock() {
  world* const w = sim::scheduling_world();
  if (w == nullptr) {
    held_outside_ = false;
    return;
  }
  w->point(op_kind::unlock, object());
  release();
}

// shared_mutex -----------------------------------------------------------------------------------------------------

shared_mutex::~shared_mutex() {
  if (sim::scheduling_world() != nullptr && (owner_ != nullptr || readers_ != 0 || pending_ != nullptr))
    sim::misuse("a shared mutex was destroyed while it was held or waited for");
}

std::uint32_t shared_mutex::object() {
  if (object_ == 0) object_ = world::current().new_object(kind_.name);
  return object_;
}

// Who waits can go on iff nobody stands in its way.
void shared_mutex::refresh() noexcept {
  world& w = world::current();
  const bool exclusive = owner_ != nullptr || held_outside_;
  for (fiber* f = pending_; f != nullptr; f = f->next_waiter)
    make_ready(w, *f, f->pending == op_kind::lock_shared ? !exclusive : !exclusive && readers_ == 0);
}

void shared_mutex::take(bool shared) {
  world& w = world::current();
  fiber& self = *w.running();
  self.pending = shared ? op_kind::lock_shared : op_kind::lock;
  self.pending_object = object();
  kernel_access::check_rank(w, kind_.rank, kind_.leaf, kind_.name);
  append(pending_, self);
  refresh();
  kernel_access::reschedule(w);
  remove(pending_, self);
  race::acquire(this);
  if (shared) {
    ++readers_;
  } else {
    race::acquire(&readers_);
    owner_ = &self;
  }
  kernel_access::push_lock(w, kind_.rank, kind_.leaf, object_);
  refresh();
}

void shared_mutex::lock() {
  if (sim::scheduling_world() != nullptr) return take(false);
  if (owner_ != nullptr || held_outside_ || readers_ != 0) sim::misuse("a check or test took a lock that is held");
  held_outside_ = true;
}

void shared_mutex::unlock() {
  world* const w = sim::scheduling_world();
  if (w == nullptr) {
    held_outside_ = false;
    return;
  }
  w->point(op_kind::unlock, object());
  if (owner_ != w->running())
    w->violate("lock misuse", w->running()->name + " unlocks " + kind_.name + ", which it does not own");
  owner_ = nullptr;
  race::release(this);
  kernel_access::pop_lock(*w, object_);
  if (kernel_access::has_quiet_points(*w)) kernel_access::run_quiet_points(*w, *w->running()->owner, kind_.rank);
  refresh();
}

void shared_mutex::lock_shared() {
  if (sim::scheduling_world() != nullptr) return take(true);
  if (owner_ != nullptr || held_outside_) sim::misuse("a check or test took a lock that is held");
  ++readers_;
}

void shared_mutex::unlock_shared() {
  world* const w = sim::scheduling_world();
  if (w == nullptr) {
    --readers_;
    return;
  }
  w->point(op_kind::unlock_shared, object());
  --readers_;
  race::release(&readers_);
  kernel_access::pop_lock(*w, object_);
  refresh();
}

// condition_variable -------------------------------------------------------------------------------------------------

struct condition_variable::waiter {
  fiber* who;
  mutex* held;
  waiter* next = nullptr;
  bool notified = false;
};

condition_variable::~condition_variable() {
  if (sim::scheduling_world() != nullptr && waiters_ != nullptr)
    sim::misuse("a condition variable was destroyed while it was waited for");
}

std::uint32_t condition_variable::object() {
  if (object_ == 0) object_ = world::current().new_object("condition");
  return object_;
}

// From waiting for the condition to waiting for the mutex.
void condition_variable::hand_over(waiter& w) noexcept {
  for (waiter** at = &waiters_; *at != nullptr; at = &(*at)->next)
    if (*at == &w) {
      *at = w.next;
      break;
    }
  w.who->pending = op_kind::lock;
  w.who->pending_object = w.held->object_;
  w.held->append_pending(*w.who);
}

bool condition_variable::wait_until(mutex& held, time_point deadline) {
  world* const w = sim::scheduling_world();
  if (w == nullptr) sim::misuse("a wait outside any fiber");
  w->point(op_kind::wait, object());
  w->touch(held.object());
  fiber& self = *w->running();
  waiter node{&self, &held};
  waiter** end = &waiters_;
  while (*end != nullptr) end = &(*end)->next;
  *end = &node;
  held.release();
  self.pending = op_kind::wait;
  self.pending_object = object_;
  make_ready(*w, self, false);
  if (deadline != never) {
    // The fiber's own: a crash of its host disarms it, and whoever is gone stays so.
    kernel_scope kernel;
    self.deadline_event = w->at(deadline.time_since_epoch().count(), [this, &node] {
      node.who->deadline_event = 0;
      if (!node.notified) hand_over(node);
    });
  }
  held.wait_for_turn(self);
  kernel_access::disarm_deadline(*w, self);
  return node.notified;
}

void condition_variable::notify_one() noexcept {
  world* const w = sim::scheduling_world();
  if (w == nullptr) {
    if (waiters_ != nullptr) {
      waiters_->notified = true;
      hand_over(*waiters_);
    }
    return;
  }
  w->point(op_kind::notify, object());
  if (waiters_ == nullptr) return;
  waiters_->notified = true;
  hand_over(*waiters_);
}

void condition_variable::notify_all() noexcept {
  if (world* const w = sim::scheduling_world(); w != nullptr) w->point(op_kind::notify, object());
  while (waiters_ != nullptr) {
    waiters_->notified = true;
    hand_over(*waiters_);
  }
}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
