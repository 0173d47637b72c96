// Locks that a fiber holds: the order in which it may take them, and what is looked at when one is released.
#include <sim/kernel/world_state.hpp>

#include <string>

namespace holdfast::sim {

unsigned world::locks_held_by_running_fiber() const noexcept { return running_ != nullptr ? running_->held_count : 0; }

void kernel_access::check_rank_against_held(world& w, std::uint16_t rank, bool leaf, const char* name) {
  const fiber& self = *w.running_;
  for (unsigned i = 0; i < self.held_count; ++i) {
    const held_lock& held = self.held[i];
    const bool wrong = rank <= held.rank || held.rank >= 800 || (held.leaf && rank < 800);
    if (!wrong) continue;
    kernel_scope kernel;
    w.violate("lock rank", self.name + " takes " + name + " (rank " + std::to_string(rank) + (leaf ? ", a leaf" : "") +
                               ") while it holds " + w.object_name(held.object) + " (rank " +
                               std::to_string(held.rank) + (held.leaf ? ", a leaf)" : ")"));
    return;
  }
}

void kernel_access::refuse_lock(world& w) {
  kernel_scope kernel;
  w.violate("lock rank", w.running_->name + " holds " + std::to_string(fiber::held_max) + " locks");
}

void kernel_access::pop_lock_out_of_order(world& w, object_id object) {
  fiber& self = *w.running_;
  for (unsigned i = self.held_count; i != 0; --i)
    if (self.held[i - 1].object == object) {
      for (unsigned k = i - 1; k + 1 < self.held_count; ++k) self.held[k] = self.held[k + 1];
      --self.held_count;
      return;
    }
  kernel_scope kernel;
  w.violate("lock misuse", self.name + " releases " + w.object_name(object) + ", which it does not hold");
}

bool kernel_access::has_quiet_points(world& w) noexcept { return !w.state_->probes.empty(); }

void kernel_access::run_quiet_points(world& w, host& h, std::uint16_t rank) {
  kernel_scope kernel;
  for (auto& p : w.state_->probes)
    if (p.where == &h && p.rank == rank) p.probe();
}

}  // namespace holdfast::sim
