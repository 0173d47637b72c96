#include <sim/kernel/world_state.hpp>

namespace holdfast::sim {

void host::begin(world& w, std::uint16_t index, std::string_view name) {
  world_ = &w;
  index_ = index;
  name_.assign(name);
}

// In the order in which a destructor would: what others keep here first, the heap that it may have used last.
void host::end() {
  states_.clear();
  sleepers_.clear();
  descriptors_.clear();
  crash_hooks_.clear();
  restart_hook_ = nullptr;
  heap.reset();
  alive_ = true;
  paused_ = false;
  life_ = 1;
  leaks_on_purpose_ = false;
  marked_ = false;
  stalled_ns_ = 0;
  next_descriptor_ = 1000;
}

fiber& host::spawn(std::string_view name, std::move_only_function<void()> body) {
  return kernel_access::spawn(*this, name, std::move(body));
}

void host::crash() {
  kernel_scope kernel;
  if (!alive_) return;
  if (paused_) stalled_ns_ = stalled_ns();
  paused_ = false;
  alive_ = false;
  ++life_;
  world_->log(this, hardware_event::host_crashed);
  for (auto& hook : crash_hooks_) hook();
  crash_hooks_.clear();
  for (auto& f : world_->state_->fibers) {
    if (f->owner != this || f->state == fiber_state::finished || f->state == fiber_state::abandoned) continue;
    kernel_access::disarm_deadline(*world_, *f);
    f->state = fiber_state::abandoned;
    kernel_access::set_ready(*world_, *f, false);
    if (!f->forgiven) --world_->state_->unfinished;
    race::retire(*f, &heap);
  }
  descriptors_.clear();
  sleepers_.clear();
  states_.clear();
  heap.reset();
}

void host::restart() {
  kernel_scope kernel;
  if (alive_) return;
  alive_ = true;
  leaks_on_purpose_ = false;
  world_->log(this, hardware_event::host_started, life_);
  if (restart_hook_) restart_hook_();
}

std::uint64_t host::at(std::int64_t time_ns, std::move_only_function<void()> body) {
  kernel_scope kernel;
  return world_->at(time_ns, [this, life = life_, body = std::move(body)]() mutable {
    if (life == life_) body();
  });
}

void host::pause() {
  kernel_scope kernel;
  if (paused_) return;
  paused_ = true;
  paused_since_ns_ = world_->now();
  world_->log(this, hardware_event::host_paused);
  for (auto& f : world_->state_->fibers)
    if (f->owner == this) kernel_access::set_ready(*world_, *f, false);
}

void host::resume() {
  kernel_scope kernel;
  if (!paused_) return;
  stalled_ns_ = stalled_ns();
  paused_ = false;
  world_->log(this, hardware_event::host_resumed);
  for (auto& f : world_->state_->fibers)
    if (f->owner == this && f->wants_to_run()) kernel_access::set_ready(*world_, *f, true);
}

std::int64_t host::stalled_ns() const noexcept {
  return paused_ ? stalled_ns_ + (world_->now() - paused_since_ns_) : stalled_ns_;
}

int host::open_descriptor(descriptor& d) {
  kernel_scope kernel;
  descriptors_[next_descriptor_] = &d;
  return next_descriptor_++;
}

void host::close_descriptor(int number) {
  kernel_scope kernel;
  descriptors_.erase(number);
}

descriptor* host::find_descriptor(int number) const noexcept {
  const auto found = descriptors_.find(number);
  return found == descriptors_.end() ? nullptr : found->second;
}

void host::descriptor_changed(int number) {
  kernel_scope kernel;
  descriptor* const d = find_descriptor(number);
  if (d == nullptr || !d->readable()) return;
  for (const auto& [sleeping, watched] : sleepers_)
    if (watched == number) world_->wake(*sleeping);
}

void host::watch(fiber& f, int number) { sleepers_.emplace_back(&f, number); }
void host::unwatch(fiber& f) noexcept {
  std::erase_if(sleepers_, [&f](const auto& entry) { return entry.first == &f; });
}

}  // namespace holdfast::sim
