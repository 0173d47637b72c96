// Clock, atomics, reference counts, per-thread slots, faults, identity and hooks of the simulated side.
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/platform/identity_seed.hpp>
#include <holdfast/platform/observe.hpp>
#include <holdfast/platform/ref_count.hpp>
#include <holdfast/platform/stop_process.hpp>
#include <holdfast/platform/thread_slot.hpp>

#include <holdfast/telemetry/event.hpp>

#include <sim/faults/fault_plan.hpp>
#include <sim/platform/side.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

using sim::kernel_access;
using sim::kernel_scope;
using sim::op_kind;
using sim::world;

time_point clock::now() const noexcept {
  const world* const w = kernel_access::the_world();
  return time_point{duration{w != nullptr ? w->now() : 0}};
}

void detail::atomic_point(std::uint32_t& object, unsigned kind) noexcept {
  world* const w = sim::scheduling_world();
  if (w == nullptr) return;
  if (object == 0) object = w->new_object("atomic");
  constexpr op_kind kinds[] = {op_kind::load, op_kind::store, op_kind::read_modify_write};
  w->point(kinds[kind], object);
  sim::race::synchronize(&object);
}

bool ref_count::decrement() noexcept {
  if (world* const w = sim::scheduling_world(); w != nullptr) {
    if (object_ == 0) object_ = w->new_object("count");
    w->point(op_kind::decrement, object_);
  }
  sim::race::synchronize(&count_);
  if (count_ == 0) sim::misuse("a reference count fell below zero");
  return --count_ == 0;
}

bool ref_count::increment_unless_zero() noexcept {
  if (world* const w = sim::scheduling_world(); w != nullptr) {
    if (object_ == 0) object_ = w->new_object("count");
    w->point(op_kind::read_modify_write, object_);
  }
  sim::race::synchronize(&count_);
  if (count_ == 0) return false;
  ++count_;
  return true;
}

void* detail::fiber_slot_get(std::uint32_t slot) noexcept {
  const world* const w = kernel_access::the_world();
  if (w == nullptr || w->running() == nullptr) return nullptr;
  for (const auto& [key, value] : w->running()->slots)
    if (key == slot) return value;
  return nullptr;
}

bool detail::fiber_slot_set(std::uint32_t& slot, void* value) noexcept {
  world* const w = kernel_access::the_world();
  if (w == nullptr || w->running() == nullptr) return false;
  kernel_scope kernel;
  if (slot == 0) slot = w->new_object("thread slot");
  for (auto& [key, stored] : w->running()->slots)
    if (key == slot) {
      stored = value;
      return true;
    }
  w->running()->slots.emplace_back(slot, value);
  return true;
}

bool heap_fault(const char* site) noexcept {
  world* const w = sim::scheduling_world();
  if (w == nullptr) return false;
  kernel_scope kernel;
  return sim::fault_plan::of(*w).strike(*w->running()->owner, "heap", site) != nullptr;
}

std::uint64_t identity_seed::draw() noexcept {
  world* const w = kernel_access::the_world();
  if (w == nullptr || w->running_host() == nullptr) sim::misuse("an identity was drawn outside any host");
  kernel_scope kernel;
  sim::random_stream& stream = w->stream("identity@" + w->running_host()->name());
  for (;;)
    if (const std::uint64_t drawn = stream.next(); drawn != 0) return drawn;
}

void observe_event(const event_record& record) noexcept {
  if (world* const w = kernel_access::the_world(); w != nullptr) w->log(record);
}

void observe_suspension(const char* operation, unsigned index, void* task) noexcept {
  if (world* const w = kernel_access::the_world(); w != nullptr) w->suspension(operation, index, task);
}

void stop_process(const char* what) noexcept {
  world* const w = kernel_access::the_world();
  if (w != nullptr && w->running() != nullptr) w->violate_and_stop("broken lifetime", what);
  std::fprintf(stderr, "holdfast: %s\n", what);
  std::abort();
}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
