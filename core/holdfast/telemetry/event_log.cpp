#include <holdfast/platform/abi.hpp>

#include <holdfast/telemetry/event_log.hpp>

#include <bit>
#include <cstring>

namespace holdfast::inline HOLDFAST_ABI {

// A cell is a sequence number and the record's words, all atomic: a reader that meets a writer sees a sequence
// that changed and drops the cell, without a data race.
namespace {
constexpr std::size_t words_of_record = sizeof(event_record) / sizeof(std::uint64_t);
}

struct event_log::cell {
  std::atomic<std::uint64_t> sequence{0};  // 0 = never written; odd while it is being written
  std::atomic<std::uint64_t> words[words_of_record] = {};
};

void event_log::free_cells::operator()(cell* cells) const noexcept { delete[] cells; }

event_log::event_log(const platform::clock& clock, std::size_t ring_events, event_level recorded)
    : clock_(clock), recorded_(recorded) {
  if (ring_events == 0) return;
  const std::size_t size = std::bit_ceil(ring_events);
  mask_ = size - 1;
  ring_.reset(new cell[size]);
}

void event_log::put(const event_record& record) noexcept {
  const std::uint64_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
  cell& slot = ring_.get()[ticket & mask_];
  std::uint64_t words[words_of_record];
  std::memcpy(words, &record, sizeof(record));
  slot.sequence.store(2 * ticket + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t i = 0; i < words_of_record; ++i) slot.words[i].store(words[i], std::memory_order_relaxed);
  slot.sequence.store(2 * ticket + 2, std::memory_order_release);
}

std::vector<event_record> event_log::copy_recent() const {
  std::vector<event_record> out;
  if (ring_ == nullptr) return out;
  const std::uint64_t end = next_.load(std::memory_order_acquire);
  const std::uint64_t begin = end > mask_ + 1 ? end - (mask_ + 1) : 0;
  out.reserve(end - begin);
  for (std::uint64_t ticket = begin; ticket < end; ++ticket) {
    const cell& slot = ring_.get()[ticket & mask_];
    if (slot.sequence.load(std::memory_order_acquire) != 2 * ticket + 2) continue;
    std::uint64_t words[words_of_record];
    for (std::size_t i = 0; i < words_of_record; ++i) words[i] = slot.words[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot.sequence.load(std::memory_order_relaxed) != 2 * ticket + 2) continue;
    std::memcpy(&out.emplace_back(), words, sizeof(event_record));
  }
  return out;
}

}  // namespace holdfast::inline HOLDFAST_ABI
