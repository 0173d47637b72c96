// Time as a host had it: what was stalled is not counted against anybody.
//
// Why this exists: promises with a duration are about what a host did while it could run.
//
// Ownership   Values.
// Units       Virtual nanoseconds.
// Threading   One OS thread.
// Failure     A host that does not exist was never stalled, and its name is "?".
#pragma once

#include <properties/invariants/books/vocabulary.hpp>
#include <sim/kernel/event.hpp>
#include <sim/kernel/world.hpp>

#include <cstdint>
#include <string_view>

namespace holdfast::invariants {

/// A moment, and how long the host had been kept from running by then: times between two moments are judged without
/// what was stalled between them.
struct moment {
  std::int64_t ns = never;
  std::int64_t stalled_ns = 0;
  bool set() const noexcept { return ns != never; }
};

std::int64_t stalled_ns(sim::world& w, std::uint16_t host) noexcept;
std::string_view host_name(sim::world& w, std::uint16_t host) noexcept;
moment moment_of(sim::world& w, const sim::logged_event& e) noexcept;
/// Time since `then` in which the host could have run.
std::int64_t elapsed_ns(sim::world& w, const sim::logged_event& e, const moment& then) noexcept;

}  // namespace holdfast::invariants
