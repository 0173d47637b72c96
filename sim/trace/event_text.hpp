// Events as people and scripts see them.
//
// Why this exists: one rendering for traces, `run --events` and reports, made from the tables of events alone.
//
// Threading   One OS thread, in kernel scope. Failure: none.
#pragma once

#include <sim/kernel/world.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::sim {

/// "b/ucx-progress", "b" for hardware of a host, "world". Valid while the event is being delivered.
std::string who_of(world& w, const logged_event& e);
/// One `event` line of a trace, without the line end.
std::string event_json(const logged_event& e, const std::string& who);
/// "     1200 ns  b/app-1  span_granted  span=3 generation=1".
std::string event_text(const logged_event& e, const std::string& who);

/// Collects events as they happen, rendered.
class event_collector final : public listener {
 public:
  enum class form : std::uint8_t { json, text };
  explicit event_collector(form f, std::size_t events_max = SIZE_MAX) : form_(f), events_max_(events_max) {}
  void on_event(world& w, const logged_event& e) override;
  std::vector<std::string> lines;

 private:
  form form_;
  std::size_t events_max_;
};

}  // namespace holdfast::sim
