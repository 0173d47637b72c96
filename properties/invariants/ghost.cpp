#include <properties/invariants/ghost.hpp>

namespace holdfast::invariants {

std::vector<sim::event_kind> ghost::needs() const {
  std::vector<sim::event_kind> out = lessons_.kinds();
  out.push_back(sim::kind_of(hardware_event::host_crashed));
  return out;
}

void ghost::forget() noexcept {
  for (const std::uint16_t host : touched_) hosts_[host]->forget();
  touched_.clear();
}

host_books& ghost::books(const sim::logged_event& e) {
  if (hosts_.size() <= e.host) hosts_.resize(std::size_t{e.host} + 1);
  auto& slot = hosts_[e.host];
  if (!slot) slot = std::make_unique<host_books>();
  if (!slot->touched) {
    slot->touched = true;
    touched_.push_back(e.host);
  }
  return *slot;
}

void ghost::see(sim::world& w, const sim::logged_event& e) {
  if (e.host == no_host) return;
  host_books& b = books(e);
  if (e.kind == hardware_event::host_crashed) {
    b.forget();
    b.touched = true;  // still in the list
    return;
  }
  if (const lesson learn = lessons_.of(e.kind)) learn(w, b, e);
}

}  // namespace holdfast::invariants
