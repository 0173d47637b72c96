// Records by identity, made to be forgotten quickly.
//
// Why this exists: the state that checks rebuild lives for one run, and a process makes tens of thousands of runs a
// second. Forgetting costs one number, memory is kept, and nothing is hashed by address or iterated in hash order.
//
// Ownership   The table owns its records. A pointer is valid until the next `add`.
// Threading   One OS thread.
// Failure     None.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast::invariants {

/// `Record` is default-constructible; a forgotten one is reset by assignment, so that vectors inside would lose their
/// memory: keep such members out of it, or give the record a `reset()`.
template <class Record>
class id_table {
 public:
  Record* find(std::uint64_t id) noexcept {
    if (count_ == 0) return nullptr;
    for (std::size_t i = home(id);; i = (i + 1) & mask()) {
      const slot& s = slots_[i];
      if (s.run != run_) return nullptr;
      if (s.id == id) return &records_[s.index];
    }
  }
  /// The record of `id`, new if there was none.
  Record& operator[](std::uint64_t id) {
    if (Record* const found = find(id)) return *found;
    if (slots_.size() < 2 * (count_ + 1)) grow();
    std::size_t i = home(id);
    while (slots_[i].run == run_) i = (i + 1) & mask();
    slots_[i] = {id, static_cast<std::uint32_t>(count_), run_};
    if (count_ == records_.size()) {
      records_.emplace_back();
      ids_.push_back(id);
    } else {
      if constexpr (requires(Record& r) { r.reset(); })
        records_[count_].reset();
      else
        records_[count_] = Record{};
      ids_[count_] = id;
    }
    return records_[count_++];
  }
  void forget() noexcept {
    if (count_ == 0) return;
    count_ = 0;
    if (++run_ == 0) {  // wrapped: old slots could look new
      for (slot& s : slots_) s.run = 0;
      run_ = 1;
    }
  }
  std::size_t size() const noexcept { return count_; }
  /// In the order in which they were added.
  Record& at(std::size_t index) noexcept { return records_[index]; }
  std::uint64_t id_at(std::size_t index) const noexcept { return ids_[index]; }

 private:
  struct slot {
    std::uint64_t id = 0;
    std::uint32_t index = 0;
    std::uint32_t run = 0;  // valid if equal to the table's
  };
  std::size_t mask() const noexcept { return slots_.size() - 1; }
  std::size_t home(std::uint64_t id) const noexcept {
    return static_cast<std::size_t>((id * 0x9e3779b97f4a7c15u) >> 32) & mask();
  }
  void grow() {
    std::vector<slot> larger(std::bit_ceil(4 * (count_ + 4)));
    slots_.swap(larger);
    for (std::size_t k = 0; k < count_; ++k) {
      std::size_t i = home(ids_[k]);
      while (slots_[i].run == run_) i = (i + 1) & mask();
      slots_[i] = {ids_[k], static_cast<std::uint32_t>(k), run_};
    }
  }

  std::vector<slot> slots_;
  std::vector<Record> records_;
  std::vector<std::uint64_t> ids_;
  std::size_t count_ = 0;
  std::uint32_t run_ = 1;
};

}  // namespace holdfast::invariants
