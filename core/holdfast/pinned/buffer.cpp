#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/buffer.hpp>

#include <holdfast/pinned/arena.hpp>

namespace holdfast::inline HOLDFAST_ABI::pinned {

std::optional<remote_reference> buffer::remote() const noexcept {
  if (span_ == nullptr) return std::nullopt;
  return span_->owner().reference(*span_);
}

std::uint64_t buffer::generation() const noexcept { return span_ == nullptr ? 0 : span_->owner().generation(); }

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
