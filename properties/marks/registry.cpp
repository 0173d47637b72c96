// The list of marks, and the way of an event to those who want it.
#include <properties/marks/mark.hpp>

#include <algorithm>

namespace holdfast::marks {

namespace {

// "PM-H9" comes before "PM-H10".
bool before(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const auto digits = [](std::string_view text) {
      return std::min(text.find_first_not_of("0123456789"), text.size());
    };
    const std::size_t in_a = digits(a);
    const std::size_t in_b = digits(b);
    if (in_a != 0 && in_b != 0) {
      if (in_a != in_b) return in_a < in_b;
      if (const int order = a.substr(0, in_a).compare(b.substr(0, in_b)); order != 0) return order < 0;
      a.remove_prefix(in_a);
      b.remove_prefix(in_b);
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.size() < b.size();
}

std::size_t dense(sim::event_kind kind) noexcept {
  const auto raw = static_cast<std::uint16_t>(kind);
  return sim::is_hardware(kind) ? sim::core_event_count() + (raw & ~sim::hardware_bit) : raw;
}

}  // namespace

std::vector<reached_mark>& all_marks() {
  static auto* const made = new std::vector<reached_mark>;
  return *made;
}

void add_mark(reached_mark mark) {
  auto& all = all_marks();
  // Static objects of different files register in any order.
  const auto at = std::upper_bound(all.begin(), all.end(), mark.id,
                                   [](std::string_view id, const reached_mark& known) { return before(id, known.id); });
  all.insert(at, std::move(mark));
}

mark_watch::mark_watch() {
  by_kind_.resize(sim::core_event_count() + sim::hardware_event_table().size());
  for (reached_mark& mark : all_marks()) {
    for (const sim::event_kind kind : mark.detector->kinds()) {
      by_kind_[dense(kind)].push_back(static_cast<std::uint32_t>(all_.size()));
    }
    all_.push_back({mark.detector.get(), true});
  }
  counts_.resize(all_.size());
}

void mark_watch::begin() {
  for (watched& one : all_) {
    one.detector->reached_in_this_run = false;
    if (!one.used) continue;
    one.used = false;
    one.detector->begin();
  }
}

void mark_watch::on_event(world&, const logged_event& e) {
  for (const std::uint32_t index : by_kind_[dense(e.kind)]) {
    watched& one = all_[index];
    one.used = true;
    one.detector->see(e);
  }
}

void mark_watch::count() {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].detector->reached_in_this_run) ++counts_[i];
  }
}

}  // namespace holdfast::marks
