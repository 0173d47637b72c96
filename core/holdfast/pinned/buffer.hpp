// The caller's registered memory: the only object that reads or writes its bytes.
//
// Why this exists: a device writes into it while nobody looks. A fetch therefore takes the buffer away and gives it
// back when the device is done; no handle to the bytes stays behind.
//
// Ownership   Move-only; owns a share of a span. May outlive the pool's shutdown: then it is ordinary memory.
// Units       Bytes. `size()` is what was asked for; the rest of the last granule belongs to nobody.
// Threading   One thread at a time; may be destroyed on any.
// Failure     None.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/peer.hpp>
#include <holdfast/pinned/span.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::pinned {

class buffer {
 public:
  /// Owns nothing.
  buffer() noexcept = default;
  /// Takes over one share of `owned`.
  explicit buffer(span& owned) noexcept : span_(&owned) {}
  buffer(buffer&& other) noexcept : span_(std::exchange(other.span_, nullptr)) {}
  buffer& operator=(buffer&& other) noexcept {
    if (this != &other) {
      reset();
      span_ = std::exchange(other.span_, nullptr);
    }
    return *this;
  }
  ~buffer() { reset(); }

  explicit operator bool() const noexcept { return span_ != nullptr; }
  /// Gives the memory up; the buffer owns nothing afterwards.
  void reset() noexcept {
    if (span* const owned = std::exchange(span_, nullptr)) owned->drop_owner();
  }

  /// Exactly what was asked for; 0 if it owns nothing.
  std::size_t size() const noexcept { return span_ == nullptr ? 0 : span_->length(); }
  std::span<std::byte> bytes() noexcept {
    return span_ == nullptr ? std::span<std::byte>() : std::span<std::byte>(span_->data(), span_->length());
  }
  std::span<const std::byte> bytes() const noexcept {
    return span_ == nullptr ? std::span<const std::byte>() : std::span<const std::byte>(span_->data(), span_->length());
  }
  /// What a peer needs to read it. A description: it keeps nothing alive. None once the arena left service, since the
  /// registration may go at any moment then.
  std::optional<remote_reference> remote() const noexcept;
  /// Of the registration; 0 if it owns nothing.
  std::uint64_t generation() const noexcept;

 private:
  friend class get_operation;
  friend class memory;
  span* span_ = nullptr;
};

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
