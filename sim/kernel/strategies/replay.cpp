#include <sim/kernel/strategies/replay.hpp>

#include <sim/kernel/strategies/fifo.hpp>
#include <sim/kernel/world.hpp>

namespace holdfast::sim {

namespace {

constexpr std::uint32_t labels_shown = 12;

std::string enabled_labels(const world& w, const choice_point& at) {
  std::string out;
  for (std::uint32_t i = 0; i < at.enabled && i < labels_shown; ++i) {
    out += (i == 0 ? "'" : ", '") + w.label(i) + '\'';
  }
  if (at.enabled > labels_shown) out += " and " + std::to_string(at.enabled - labels_shown) + " more";
  return out;
}

}  // namespace

void replay_strategy::begin(world&) {
  next_ = 0;
  mismatch_.reset();
}

std::uint32_t replay_strategy::differ(world& w, const choice_point& at, const std::string& expected) {
  mismatch_ = {next_, "choice " + std::to_string(next_) + ": " + expected + "; enabled are " + enabled_labels(w, at)};
  if (then_ == after_mismatch::stop) w.violate(divergence, mismatch_->sentence);
  return unforced_choice(w, at);
}

std::uint32_t replay_strategy::choose(world& w, const choice_point& at) {
  if (mismatch_) return unforced_choice(w, at);
  if (next_ == record_.choices.size()) {
    return differ(w, at, "the trace has no more than " + std::to_string(next_) + " choices");
  }
  const trace_choice& choice = record_.choices[next_];
  const std::string& label = record_.labels[choice.label];
  if (choice.index >= at.enabled || w.label(choice.index) != label) {
    return differ(w, at, "the trace chooses '" + label + "' as entry " + std::to_string(choice.index));
  }
  if (next_ % trace_check_interval == 0 && w.enabled_check() != record_.checks[next_ / trace_check_interval]) {
    return differ(w, at, "the trace chooses '" + label + "' from other entries than these");
  }
  ++next_;
  return choice.index;
}

std::uint32_t index_replay_strategy::choose(world& w, const choice_point& at) {
  std::uint64_t index = 0;
  bool whole = false;
  for (unsigned shift = 0; at_ < record_.size() && !whole && shift < 35; shift += 7) {
    const std::uint8_t byte = record_[at_++];
    index |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    whole = (byte & 0x80) == 0;
  }
  if (whole && index < at.enabled) return static_cast<std::uint32_t>(index);
  if (at_end_ == after_mismatch::stop || whole) {
    w.violate(divergence, "the run did not repeat itself: it asks for a choice that its record does not hold");
  }
  return unforced_choice(w, at);
}

void append_index(std::vector<std::uint8_t>& record, std::uint32_t index) {
  while (index >= 0x80) {
    record.push_back(static_cast<std::uint8_t>(index | 0x80));
    index >>= 7;
  }
  record.push_back(static_cast<std::uint8_t>(index));
}

}  // namespace holdfast::sim
