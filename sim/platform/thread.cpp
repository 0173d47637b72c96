#include <holdfast/platform/thread.hpp>

#include <sim/faults/fault_plan.hpp>
#include <sim/platform/side.hpp>

#include <cerrno>

namespace holdfast::inline HOLDFAST_ABI::platform {

using sim::fiber;
using sim::fiber_state;
using sim::op_kind;
using sim::world;

thread& thread::operator=(thread&& other) noexcept {
  if (fiber_ != nullptr) sim::misuse("a joinable thread was overwritten");
  fiber_ = std::exchange(other.fiber_, nullptr);
  return *this;
}

thread::~thread() {
  if (fiber_ != nullptr && sim::scheduling_world() != nullptr) sim::misuse("a joinable thread was destroyed");
}

std::expected<thread, int> thread::start(std::string_view name, std::move_only_function<void()> body) {
  world* const w = sim::scheduling_world();
  if (w == nullptr) sim::misuse("a thread was started outside any fiber");
  w->point(op_kind::thread_start);
  {
    sim::kernel_scope kernel;
    if (sim::fault_plan::of(*w).strike(*w->running()->owner, "thread.start") != nullptr) return std::unexpected(EAGAIN);
  }
  thread made;
  made.fiber_ = &w->running()->owner->spawn(name, std::move(body));
  return made;
}

void thread::join() {
  world* const w = sim::scheduling_world();
  if (w == nullptr) sim::misuse("a thread was joined outside any fiber");
  w->point(op_kind::thread_join);
  while (fiber_->state != fiber_state::finished && fiber_->state != fiber_state::abandoned) {
    {
      sim::kernel_scope kernel;
      fiber_->joiners.push_back(w->running());
    }
    w->block(op_kind::thread_join, 0, INT64_MAX);
  }
  sim::race::acquire(fiber_);
  fiber_ = nullptr;
}

void thread::abandon() noexcept {
  if (fiber_ != nullptr) world::current().forgive(*fiber_);
  fiber_ = nullptr;
}

void yield() noexcept {
  if (world* const w = sim::scheduling_world(); w != nullptr) w->point(op_kind::yield);
}

std::uint64_t this_thread_number() noexcept {
  const world* const w = sim::kernel_access::the_world();
  return w != nullptr && w->running() != nullptr ? w->running()->index + 1 : 1;
}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
