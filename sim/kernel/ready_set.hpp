// Which fibers can run, by number, and which is the n-th of them.
//
// Why this exists: every scheduling point asks, and the baseline x86-64 can neither count bits nor select one in one
// instruction. Most worlds have few fibers: those are looked up in tables, larger ones are counted.
//
// Threading   One OS thread. Failure: none.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace holdfast::sim {

class ready_set {
 public:
  /// Room for fibers below `fibers`.
  void grow(std::uint32_t fibers) {
    if (words_.size() * 64 < fibers) words_.resize((fibers + 63) / 64, 0);
  }
  /// Empty; the room stays.
  void clear() noexcept {
    for (std::uint64_t& word : words_) word = 0;
    count_ = 0;
  }
  std::uint32_t count() const noexcept { return count_; }
  /// Puts `fiber` in, or takes it out; it must not be there, or there.
  void flip(std::uint32_t fiber, bool in) noexcept {
    words_[fiber / 64] ^= std::uint64_t{1} << (fiber % 64);
    count_ += in ? 1u : ~0u;
  }
  /// How many ready ones come before `fiber`.
  std::uint32_t rank_of(std::uint32_t fiber) const noexcept {
    if (fiber < 8) return small.count[words_[0] & ((1u << fiber) - 1)];
    std::uint32_t rank = 0;
    for (std::uint32_t word = 0; word < fiber / 64; ++word) rank += count_bits(words_[word]);
    return rank + count_bits(words_[fiber / 64] & ((std::uint64_t{1} << (fiber % 64)) - 1));
  }
  /// The ready one that has `rank` before it; `rank` below `count`.
  std::uint32_t at(std::uint32_t rank) const noexcept {
    const std::uint64_t first = words_[0];
    if (rank < small.count[first & 0xff]) return small.place[first & 0xff][rank];
    return at_in_words(rank);
  }

 private:
  static constexpr std::uint32_t count_bits(std::uint64_t bits) noexcept {
    bits -= (bits >> 1) & 0x5555555555555555u;
    bits = (bits & 0x3333333333333333u) + ((bits >> 2) & 0x3333333333333333u);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return static_cast<std::uint32_t>((bits * 0x0101010101010101u) >> 56);
  }
  std::uint32_t at_in_words(std::uint32_t rank) const noexcept;

  struct tables {
    std::uint8_t count[256];
    std::uint8_t place[256][8];
  };
  static constexpr tables make_tables() {
    tables out{};
    for (unsigned byte = 0; byte < 256; ++byte)
      for (unsigned bit = 0; bit < 8; ++bit)
        if ((byte >> bit & 1) != 0) out.place[byte][out.count[byte]++] = static_cast<std::uint8_t>(bit);
    return out;
  }
  static const tables small;

  std::vector<std::uint64_t> words_;
  std::uint32_t count_ = 0;
};

inline constexpr ready_set::tables ready_set::small = ready_set::make_tables();

}  // namespace holdfast::sim
