#include <properties/invariants/books/lessons.hpp>

#include <cstdlib>

namespace holdfast::invariants {

lesson_table::lesson_table()
    : of_core_(sim::core_event_count(), nullptr), of_hardware_(sim::hardware_event_table().size(), nullptr) {
  add_memory_lessons(*this);
  add_arena_lessons(*this);
  add_span_lessons(*this);
  add_ledger_lessons(*this);
  add_pool_lessons(*this);
  add_shutdown_lessons(*this);
  add_quarantine_lessons(*this);
  add_operation_lessons(*this);
  add_peer_lessons(*this);
  add_transport_lessons(*this);
  add_library_lessons(*this);
}

void lesson_table::on(event_id id, lesson learn) {
  put(of_core_[static_cast<std::size_t>(id)], sim::kind_of(id), learn);
}

void lesson_table::on(hardware_event id, lesson learn) {
  put(of_hardware_[static_cast<std::size_t>(id)], sim::kind_of(id), learn);
}

void lesson_table::put(lesson& slot, sim::event_kind kind, lesson learn) {
  if (slot != nullptr) std::abort();
  slot = learn;
  kinds_.push_back(kind);
}

}  // namespace holdfast::invariants
