#include <properties/invariants/books/moment.hpp>

namespace holdfast::invariants {

std::int64_t stalled_ns(sim::world& w, std::uint16_t host) noexcept {
  return host < w.hosts().size() ? w.hosts()[host]->stalled_ns() : 0;
}

std::string_view host_name(sim::world& w, std::uint16_t host) noexcept {
  return host < w.hosts().size() ? std::string_view(w.hosts()[host]->name()) : std::string_view("?");
}

moment moment_of(sim::world& w, const sim::logged_event& e) noexcept { return {e.time_ns, stalled_ns(w, e.host)}; }

std::int64_t elapsed_ns(sim::world& w, const sim::logged_event& e, const moment& then) noexcept {
  return e.time_ns - then.ns - (stalled_ns(w, e.host) - then.stalled_ns);
}

}  // namespace holdfast::invariants
