#include <holdfast/platform/poller.hpp>

#include <holdfast/platform/host.hpp>

#include <sim/platform/side.hpp>

#include <new>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::platform {

using sim::fiber;
using sim::kernel_access;
using sim::kernel_scope;
using sim::op_kind;
using sim::world;

struct poller::state {
  sim::host& machine;
  sim::object_id object;
  bool pending = false;
  fiber* sleeper = nullptr;
  std::vector<int> watched;
};

std::expected<poller, int> poller::create(host& host) noexcept {
  poller made;
  world& w = host.machine().owner();
  made.state_ = new state{host.machine(), w.new_object("poller"), false, nullptr, {}};
  return made;
}

poller& poller::operator=(poller&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

poller::~poller() {
  if (state_ != nullptr && state_->sleeper != nullptr) sim::misuse("a poller was destroyed while a thread slept in it");
  delete state_;
}

bool poller::add(int descriptor) noexcept {
  state_->watched.push_back(descriptor);
  return true;
}

wake_cause poller::sleep(time_point deadline) noexcept {
  world& w = world::current();
  for (;;) {
    wake_cause cause = wake_cause::none;
    if (state_->pending) cause = cause | wake_cause::woken;
    for (const int number : state_->watched)
      if (const sim::descriptor* const d = state_->machine.find_descriptor(number); d != nullptr && d->readable())
        cause = cause | wake_cause::descriptor;
    if (cause != wake_cause::none) {
      sim::race::acquire(state_);
      return cause;
    }
    if (deadline != never && w.now() >= deadline.time_since_epoch().count()) return wake_cause::deadline;
    rest(deadline);
  }
}

// Until woken, or a watched descriptor becomes readable, or the deadline.
void poller::rest(time_point deadline) noexcept {
  world& w = world::current();
  fiber& self = *w.running();
  {
    kernel_scope kernel;
    for (const int number : state_->watched) state_->machine.watch(self, number);
  }
  state_->sleeper = &self;
  w.block(op_kind::poller_wait, state_->object, deadline.time_since_epoch().count());
  state_->sleeper = nullptr;
  {
    kernel_scope kernel;
    state_->machine.unwatch(self);
  }
}

wake_cause poller::wait(time_point deadline) noexcept {
  world& w = world::current();
  w.point(op_kind::poller_wait, state_->object);
  return sleep(deadline);
}

void poller::wake() noexcept {
  world& w = world::current();
  w.point(op_kind::poller_wake, state_->object);
  sim::race::release(state_);
  state_->pending = true;
  if (state_->sleeper != nullptr) w.wake(*state_->sleeper);
}

void poller::drain_wakes() noexcept {
  world::current().point(op_kind::poller_wake, state_->object);
  state_->pending = false;
}

// Blocks until something new happens, not while something is pending: a caller that spins over a descriptor that
// stays readable would otherwise stop time. What came before costs at most the deadline.
void poller::relax(time_point deadline) noexcept {
  world& w = world::current();
  w.point(op_kind::yield, state_->object);
  if (deadline == never || w.now() >= deadline.time_since_epoch().count()) return;
  rest(deadline);
}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
