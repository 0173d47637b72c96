#include <holdfast/platform/abi.hpp>

#include <holdfast/base/frame_pool.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/platform/stop_process.hpp>

#include <new>

namespace holdfast::inline HOLDFAST_ABI {

// Stands before the frame and keeps its alignment.
struct alignas(std::max_align_t) frame_pool::header {
  frame_pool* pool;
  union {
    std::size_t size_class;  // of a frame in use; `classes` for one that is not kept
    header* next;            // of a kept one
  };
};

frame_pool::frame_pool(std::size_t kept_bytes_max) noexcept
    : kept_bytes_max_(kept_bytes_max), mutex_(lock_ranks::base_frames) {}

frame_pool::~frame_pool() {
  if (frames_out() != 0) platform::stop_process("a frame pool was destroyed under a task");
  for (header*& kept : kept_) {
    while (header* const block = kept) {
      kept = block->next;
      ::operator delete(block);
    }
  }
}

void* frame_pool::allocate(std::size_t bytes) noexcept {
  if (platform::heap_fault("base.frame")) return nullptr;
  const std::size_t size_class = kept_bytes_max_ == 0 ? classes : (bytes + step_bytes - 1) / step_bytes - 1;
  header* block = nullptr;
  if (size_class < classes) {
    scoped_lock lock(mutex_);
    block = kept_[size_class];
    if (block != nullptr) {
      kept_[size_class] = block->next;
      kept_bytes_ -= (size_class + 1) * step_bytes;
    }
  }
  if (block == nullptr) {
    const std::size_t rounded = size_class < classes ? (size_class + 1) * step_bytes : bytes;
    block = static_cast<header*>(::operator new(sizeof(header) + rounded, std::nothrow));
    if (block == nullptr) return nullptr;
  }
  block->pool = this;
  block->size_class = size_class < classes ? size_class : classes;
  out_.fetch_add(1, std::memory_order_relaxed);
  return block + 1;
}

void frame_pool::release(void* frame) noexcept {
  header* const block = static_cast<header*>(frame) - 1;
  frame_pool& pool = *block->pool;
  const std::size_t size_class = block->size_class;
  bool kept = false;
  if (size_class < classes) {
    const std::size_t bytes = (size_class + 1) * step_bytes;
    scoped_lock lock(pool.mutex_);
    if (bytes <= pool.kept_bytes_max_ - pool.kept_bytes_) {
      block->next = pool.kept_[size_class];
      pool.kept_[size_class] = block;
      pool.kept_bytes_ += bytes;
      kept = true;
    }
  }
  if (!kept) ::operator delete(block);
  // Last: who sees the count at zero may destroy the pool.
  pool.out_.fetch_sub(1, std::memory_order_release);
}

}  // namespace holdfast::inline HOLDFAST_ABI
