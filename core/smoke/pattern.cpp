#include <holdfast/platform/abi.hpp>

#include "smoke/pattern.hpp"

namespace holdfast::smoke {

namespace {

// Eight bytes at once; the mixing makes neighbors, and the same place under another seed, unlike each other.
std::uint64_t word(std::uint64_t seed, std::uint64_t number) noexcept {
  std::uint64_t x = (number + 1) * 0x9e3779b97f4a7c15u + seed * 0xd1342543de82ef95u;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}

class stream {
 public:
  stream(std::uint64_t seed, std::uint64_t from) noexcept : seed_(seed), at_(from), word_(word(seed, from / 8)) {}
  std::byte next() noexcept {
    if (at_ % 8 == 0) word_ = word(seed_, at_ / 8);
    return static_cast<std::byte>(word_ >> (at_++ % 8 * 8));
  }

 private:
  std::uint64_t seed_, at_, word_;
};

}  // namespace

void write_pattern(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t from) noexcept {
  stream right(seed, from);
  for (std::byte& b : bytes) b = right.next();
}

void write_complement(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t from) noexcept {
  stream right(seed, from);
  for (std::byte& b : bytes) b = ~right.next();
}

std::optional<std::size_t> first_wrong(std::span<const std::byte> bytes, std::uint64_t seed,
                                       std::uint64_t from) noexcept {
  stream right(seed, from);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != right.next()) return i;
  return std::nullopt;
}

}  // namespace holdfast::smoke
