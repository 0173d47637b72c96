// What the event stream says the world is like: the state that invariants judge.
//
// Why this exists: a check may not look into core, or it would believe what core believes. So the books are kept a
// second time, from events and simulated hardware only, once for all checks. Nothing here judges; records are never
// removed within a run, they count what happened to them.
//
// How the two vocabularies meet: core names blocks, regions and operations by its own numbers, the hardware by its
// own. They are joined where one call causes both events: pages are owned and then named on one fiber, a registration
// lies over a block, an operation is handed over and then posted on one fiber.
//
// The books stand in books/*_books.hpp, what is learned from each kind of event in books/*_lessons.cpp.
//
// Ownership   One ghost for the process, in registry.cpp.
// Units       As each of the books says.
// Threading   One OS thread.
// Failure     An event about something that was never introduced changes nothing.
#pragma once

#include <properties/invariants/books/host_books.hpp>
#include <properties/invariants/books/lessons.hpp>
#include <sim/kernel/event.hpp>
#include <sim/kernel/world.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace holdfast::invariants {

/// In place of the index of a host: the event is about the world.
inline constexpr std::uint16_t no_host = 0xffff;

class ghost {
 public:
  /// Kinds that it learns from.
  std::vector<sim::event_kind> needs() const;
  void forget() noexcept;
  void see(sim::world& w, const sim::logged_event& e);

  host_books& of(std::uint16_t host) { return *hosts_[host]; }
  std::size_t host_count() const noexcept { return hosts_.size(); }
  bool touched(std::size_t host) const noexcept { return hosts_[host] && hosts_[host]->touched; }

 private:
  host_books& books(const sim::logged_event& e);

  lesson_table lessons_;
  std::vector<std::unique_ptr<host_books>> hosts_;
  std::vector<std::uint16_t> touched_;
};

}  // namespace holdfast::invariants
