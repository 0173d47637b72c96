// Memory of coroutine frames, kept for the next operation of the same size.
//
// Why this exists: an operation in steady state should not visit the heap, and a frame that cannot be had is an
// error value of that operation, not an exception.
//
// Ownership   Owned by the runtime; outlives every task made with it. Destroying it with frames out stops the process.
// Units       Bytes.
// Threading   From any thread. With `kept_bytes_max` 0 no lock is taken.
// Failure     `allocate` answers null (site "base.frame"); nothing changed then.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/thread_annotations.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/mutex.hpp>

#include <cstddef>

namespace holdfast::inline HOLDFAST_ABI {

class frame_pool {
 public:
  /// Keeps at most `kept_bytes_max` bytes of unused frames; more goes back to the heap.
  explicit frame_pool(std::size_t kept_bytes_max = 256 * 1024) noexcept;
  ~frame_pool();
  frame_pool(const frame_pool&) = delete;
  frame_pool& operator=(const frame_pool&) = delete;

  /// Aligned for any ordinary type. The frame remembers its pool.
  void* allocate(std::size_t bytes) noexcept;
  /// `frame` came from `allocate` of some pool.
  static void release(void* frame) noexcept;
  /// Frames that are out, for reports and for the end.
  std::size_t frames_out() const noexcept { return out_.load(std::memory_order_acquire); }

 private:
  struct header;
  static constexpr std::size_t step_bytes = 128;
  static constexpr std::size_t classes = 32;  // up to 4 KiB; larger frames are not kept

  const std::size_t kept_bytes_max_;
  platform::atomic<std::size_t> out_{0};
  platform::mutex mutex_;
  header* kept_[classes] HOLDFAST_GUARDED_BY(mutex_) = {};
  std::size_t kept_bytes_ HOLDFAST_GUARDED_BY(mutex_) = 0;
};

}  // namespace holdfast::inline HOLDFAST_ABI
