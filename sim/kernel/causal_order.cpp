#include <sim/kernel/causal_order.hpp>

#include <sim/kernel/kernel_scope.hpp>

namespace holdfast::sim {

namespace {

std::uint64_t scrambled(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Depends on the order of its arguments.
std::uint64_t mixed(std::uint64_t a, std::uint64_t b) noexcept {
  return scrambled((a + 0x9e3779b97f4a7c15u) * 0xd1342543de82ef95u + b);
}

// Operations whose whole effect is on their object, or on what is told besides; all others may touch anything.
bool stays_with_its_object(op_kind op) noexcept {
  switch (op) {
    case op_kind::driver_call:
    case op_kind::wait:
    case op_kind::lock:
    case op_kind::try_lock:
    case op_kind::unlock:
    case op_kind::lock_shared:
    case op_kind::unlock_shared:
    case op_kind::notify:
    case op_kind::load:
    case op_kind::store:
    case op_kind::read_modify_write:
    case op_kind::decrement:
    case op_kind::post:
    case op_kind::take:
    case op_kind::timer_arm:
    case op_kind::timer_cancel:
    case op_kind::poller_wait:
    case op_kind::poller_wake:
    case op_kind::yield: return true;
    default: return false;
  }
}

}  // namespace

void causal_order::begin() {
  last_.clear();
  objects_.clear();
  outside_ = {};
  epoch_ = 0;
  total_ = 0;
  told_ = 0;
}

std::uint64_t& causal_order::last_of(std::uint32_t fiber) {
  while (last_.size() <= fiber) {
    kernel_scope kernel;
    last_.push_back(scrambled(last_.size() + 1));
  }
  return last_[fiber];
}

std::uint64_t causal_order::barrier(std::uint64_t by) {
  epoch_ = mixed(total_, by);
  total_ += epoch_;
  return epoch_;
}

void causal_order::performed(std::uint32_t fiber, op_kind op, object_id object) {
  if (op == op_kind::driver_call) {
    touched(fiber);
    if (object == 0) return;
  }
  std::uint64_t& last = last_of(fiber);
  const std::uint64_t what = mixed(last, static_cast<std::uint64_t>(op));
  if (object == 0 && (op == op_kind::yield || op == op_kind::start)) {  // nothing to anybody else
    last = what;
    total_ += what;
    return;
  }
  if (object == 0 || !stays_with_its_object(op)) {
    last = barrier(what);
    return;
  }
  if (objects_.size() <= object) {
    kernel_scope kernel;
    objects_.resize(object + 1);
  }
  // Numbers of objects differ from run to run; which object it is, the fiber's past says, and the object's.
  object_state& o = objects_[object];
  std::uint64_t self = mixed(mixed(what, epoch_), o.written);
  if (op == op_kind::load) {
    o.read += self;
  } else {
    self = mixed(self, o.read);
    o = {self, 0};
  }
  last = self;
  total_ += self;
}

void causal_order::touched(std::uint32_t fiber) {
  std::uint64_t& last = last_of(fiber);
  last = mixed(mixed(last, epoch_), outside_.written);
  outside_.written = last;
  total_ += last;
}

void causal_order::woke(std::uint32_t waker, std::uint32_t woken) {
  const std::uint64_t by = last_of(waker);
  std::uint64_t& last = last_of(woken);
  last = mixed(last, by);
}

}  // namespace holdfast::sim
