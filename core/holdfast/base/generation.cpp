#include <holdfast/platform/abi.hpp>

#include <holdfast/base/generation.hpp>

#include <holdfast/platform/stop_process.hpp>

namespace holdfast::inline HOLDFAST_ABI {

namespace {
// Far enough from the wrap that threads which are issuing while one of them stops the process do not reach it.
constexpr std::uint64_t last_number = ~std::uint64_t{0} - (std::uint64_t{1} << 32);
}  // namespace

generation::generation(std::uint64_t first) noexcept : first_(first), next_(first) {
  if (first == 0) platform::stop_process("numbers of a generation begin above 0");
}

std::uint64_t generation::issue() noexcept {
  const std::uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
  if (number > last_number) platform::stop_process("the numbers of a generation are used up");
  return number;
}

std::uint64_t generation::issued() const noexcept { return next_.load(std::memory_order_relaxed) - first_; }

}  // namespace holdfast::inline HOLDFAST_ABI
