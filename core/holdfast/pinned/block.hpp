// The pages of one arena, which leak unless somebody can say that no device reaches them any more.
//
// Why this exists: returning registered memory to the system is the one mistake that corrupts strangers. So the rule
// is turned round: a block is not freed by being destroyed, it is freed by being known to be unreachable.
//
// Ownership   Owned by its arena, also while a registration of it is being asked for.
// Units       Bytes, multiples of the page size.
// Threading   One thread at a time changes it (the arena orders them); `freeable` may be read by any.
// Failure     By value. A block that may not be freed is leaked with an event.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/pages.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <cstddef>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::pinned {

class page_block {
 public:
  page_block() noexcept = default;
  page_block(const page_block&) = delete;
  page_block& operator=(const page_block&) = delete;
  ~page_block();
  /// Gives the pages back if nobody can reach them, leaks them with an error event otherwise. Empty afterwards; what the
  /// destructor does.
  void end() noexcept;

  /// Takes `bytes` of zeroed pages under the name `id`. Nobody was told about them yet: freeable.
  /// Errors: out_of_memory with the bytes; the block stays empty.
  result<void> allocate(platform::pages& pages, event_log& log, std::uint64_t id, std::size_t bytes,
                        bool keeps_tombstones) noexcept;

  /// A registration is about to be asked for: from here on the pages leak unless an answer says otherwise.
  void handed_to_map() noexcept;
  /// No registration exists and none will appear.
  void map_failed() noexcept;
  /// Nothing can reach the pages any more: the unmap was confirmed, or a witness stands for it.
  void registration_gone() noexcept;

  /// Gives freeable pages back now; the block is empty afterwards. Stops the process if a device may reach them.
  void give_back() noexcept;

  bool freeable() const noexcept { return freeable_.load(std::memory_order_acquire); }
  std::byte* base() const noexcept { return base_; }
  std::size_t bytes() const noexcept { return bytes_; }
  std::uint64_t id() const noexcept { return id_; }

 private:
  void release_pages() noexcept;

  platform::pages* pages_ = nullptr;
  event_log* log_ = nullptr;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t id_ = 0;
  bool keeps_tombstones_ = false;
  platform::atomic<bool> freeable_{false};
};

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
