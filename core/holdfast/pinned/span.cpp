#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/span.hpp>

#include <holdfast/pinned/arena.hpp>
#include <holdfast/platform/heap_fault.hpp>

#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::pinned {

span* span::make() noexcept {
  if (platform::heap_fault("pinned.span")) return nullptr;
  return new (std::nothrow) span;
}

void span::drop_owner() noexcept {
  if (owners_.decrement()) owner_->give_back(*this);
}

transfer_hold transfer_hold::take(span& held) noexcept {
  transfer_hold hold;
  if (!held.owner().begin_transfer(held)) return hold;
  held.add_owner();
  hold.span_ = &held;
  return hold;
}

transfer_hold::transfer_hold(transfer_hold&& other) noexcept : span_(std::exchange(other.span_, nullptr)) {}

transfer_hold& transfer_hold::operator=(transfer_hold&& other) noexcept {
  if (this != &other) {
    drop();
    span_ = std::exchange(other.span_, nullptr);
  }
  return *this;
}

void transfer_hold::drop() noexcept {
  span* const held = std::exchange(span_, nullptr);
  if (held == nullptr) return;
  held->owner().end_transfer(*held);
  held->drop_owner();
}

void transfer_hold::drop_into_quarantine(std::uint64_t operation, bool entered) noexcept {
  span* const held = std::exchange(span_, nullptr);
  if (held != nullptr) held->owner().end_transfer_unknown(*held, operation, entered);
}

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
