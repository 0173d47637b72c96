#include <sim/trace/recorder.hpp>

#include <sim/trace/event_text.hpp>

namespace holdfast::sim {

void trace_recorder::on_event(world& w, const logged_event& e) {
  if (events_max_ == 0) return;
  if (events_.size() < events_max_) {
    events_.push_back({e, who_of(w, e)});
    return;
  }
  events_[oldest_] = {e, who_of(w, e)};
  oldest_ = (oldest_ + 1) % events_max_;
}

void trace_recorder::on_choice(world& w, const choice_point&, std::uint32_t index) {
  if (choices.choices.size() % trace_check_interval == 0) choices.checks.push_back(w.enabled_check());
  const std::string label = w.label(index);
  auto found = labels_.find(label);
  if (found == labels_.end()) {
    found = labels_.emplace(label, static_cast<std::uint32_t>(choices.labels.size())).first;
    choices.labels.push_back(label);
  }
  choices.choices.push_back({index, found->second});
}

std::vector<std::string> trace_recorder::event_lines() const {
  std::vector<std::string> out;
  out.reserve(events_.size());
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const kept& k = events_[(oldest_ + i) % events_.size()];
    out.push_back(event_json(k.event, k.who));
  }
  return out;
}

}  // namespace holdfast::sim
