#include <sim/kernel/ready_set.hpp>

namespace holdfast::sim {

std::uint32_t ready_set::at_in_words(std::uint32_t rank) const noexcept {
  std::uint32_t word = 0;
  for (;; ++word) {
    const std::uint32_t here = count_bits(words_[word]);
    if (rank < here) break;
    rank -= here;
  }
  std::uint64_t bits = words_[word];
  for (; rank != 0; --rank) bits &= bits - 1;
  return word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
}

}  // namespace holdfast::sim
