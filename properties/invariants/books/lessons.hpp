// What the ghost learns from an event: one short function for each kind.
//
// Why this exists: that a kind is wanted and that something is learned from it is one statement, so neither is
// forgotten, and a subject's lessons stand beside each other.
//
// Ownership   The ghost owns the table, for the life of the process.
// Threading   One OS thread.
// Failure     A second lesson for a kind ends the process at its start.
#pragma once

#include <properties/invariants/books/host_books.hpp>
#include <sim/kernel/event.hpp>
#include <sim/kernel/world.hpp>

#include <vector>

namespace holdfast::invariants {

using holdfast::event_id;
using sim::hardware_event;
using sim::logged_event;
using sim::world;

using lesson = void (*)(world&, host_books&, const logged_event&);

class lesson_table {
 public:
  lesson_table();
  void on(event_id id, lesson learn);
  void on(hardware_event id, lesson learn);

  /// Null: nothing is learned from this kind.
  lesson of(sim::event_kind kind) const noexcept {
    const auto raw = static_cast<std::uint16_t>(kind);
    return is_hardware(kind) ? of_hardware_[raw & ~sim::hardware_bit] : of_core_[raw];
  }
  /// From which something is learned.
  const std::vector<sim::event_kind>& kinds() const noexcept { return kinds_; }

 private:
  void put(lesson& slot, sim::event_kind kind, lesson learn);

  std::vector<lesson> of_core_, of_hardware_;
  std::vector<sim::event_kind> kinds_;
};

void add_memory_lessons(lesson_table&);
void add_arena_lessons(lesson_table&);
void add_span_lessons(lesson_table&);
void add_ledger_lessons(lesson_table&);
void add_pool_lessons(lesson_table&);
void add_shutdown_lessons(lesson_table&);
void add_quarantine_lessons(lesson_table&);
void add_operation_lessons(lesson_table&);
void add_peer_lessons(lesson_table&);
void add_transport_lessons(lesson_table&);
void add_library_lessons(lesson_table&);

}  // namespace holdfast::invariants
