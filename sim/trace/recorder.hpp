// Collects what a trace needs beyond the indices: labels, checks of whole enabled sets, events.
//
// Why this exists: an ordinary run records indices alone, because labels cost more than the run. When a run turns out
// to be worth keeping it is run again with this listener.
//
// Ownership   Owns what it collected. Threading: one OS thread, in kernel scope. Failure: none.
#pragma once

#include <sim/kernel/world.hpp>
#include <sim/trace/trace.hpp>

#include <map>
#include <string>
#include <vector>

namespace holdfast::sim {

class trace_recorder final : public listener {
 public:
  /// Keeps the last `events_max` events; 0 keeps none.
  explicit trace_recorder(std::size_t events_max) : events_max_(events_max) {}
  void on_event(world& w, const logged_event& e) override;
  void on_choice(world& w, const choice_point& at, std::uint32_t index) override;

  recorded_choices choices;
  /// `event` lines, oldest first.
  std::vector<std::string> event_lines() const;

 private:
  struct kept {
    logged_event event;
    std::string who;
  };
  std::size_t events_max_;
  std::vector<kept> events_;  // a ring, once it is full
  std::size_t oldest_ = 0;
  std::map<std::string, std::uint32_t, std::less<>> labels_;
};

}  // namespace holdfast::sim
