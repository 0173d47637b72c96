#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/block.hpp>

#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/platform/stop_process.hpp>
#include <holdfast/telemetry/emit.hpp>

namespace holdfast::inline HOLDFAST_ABI::pinned {

page_block::~page_block() { end(); }

void page_block::end() noexcept {
  if (base_ == nullptr) return;
  if (!freeable()) {
    emit::block_leaked(*log_, id_, bytes_);
    base_ = nullptr;
    return;
  }
  release_pages();
}

result<void> page_block::allocate(platform::pages& pages, event_log& log, std::uint64_t id, std::size_t bytes,
                                  bool keeps_tombstones) noexcept {
  if (platform::heap_fault("pinned.block")) return fail(error_code::out_of_memory, "pinned.block", 0, bytes);
  const auto base = pages.allocate(bytes);
  if (!base) return fail(error_code::out_of_memory, "pinned.block", 0, bytes, static_cast<std::uint64_t>(base.error()));
  pages_ = &pages;
  log_ = &log;
  base_ = *base;
  bytes_ = bytes;
  id_ = id;
  keeps_tombstones_ = keeps_tombstones;
  freeable_.store(true, std::memory_order_release);
  emit::block_allocated(log, id_, bytes_);
  return {};
}

void page_block::handed_to_map() noexcept { freeable_.store(false, std::memory_order_release); }

void page_block::map_failed() noexcept { freeable_.store(true, std::memory_order_release); }

void page_block::registration_gone() noexcept { freeable_.store(true, std::memory_order_release); }

void page_block::give_back() noexcept {
  if (base_ == nullptr) return;
  if (!freeable()) platform::stop_process("pinned: pages that a device may reach were about to be freed");
  release_pages();
}

void page_block::release_pages() noexcept {
  if (!keeps_tombstones_) {
    // Told first: once the range is free somebody else may be granted it at once.
    emit::block_freed(*log_, id_, bytes_);
    pages_->free(base_, bytes_);
  } else if (pages_->tombstone(base_, bytes_)) {
    emit::block_freed(*log_, id_, bytes_);
  } else {
    // The address may still be named by a read that is late: better to lose the pages than to lend the range out.
    emit::block_leaked(*log_, id_, bytes_);
  }
  base_ = nullptr;
}

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
