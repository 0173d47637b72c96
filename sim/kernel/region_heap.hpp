// A host's heap: what its program allocates while it runs on fibers.
//
// Why this exists: a crashed host, or a world that stopped at a violation, is abandoned: no destructor runs. What
// its program had allocated goes with the region, at once. A host that ended cleanly has an empty region: that is
// the leak check.
//
// Ownership   The host owns the region. Blocks belong to the program.
// Units       Bytes. Threading: one OS thread.
// Failure     `allocate` answers null when the region is full (the caller throws or reports).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace holdfast::sim {

class region_heap {
 public:
  region_heap() noexcept = default;
  ~region_heap();
  region_heap(const region_heap&) = delete;
  region_heap& operator=(const region_heap&) = delete;

  /// `site`: an address in the code that asked, for the report of a leak.
  void* allocate(std::size_t bytes, std::size_t alignment, const void* site = nullptr) noexcept;
  void release(void* p) noexcept;
  /// Throws every block away.
  void reset() noexcept;
  std::size_t live_blocks() const noexcept { return live_blocks_; }
  std::size_t live_bytes() const noexcept { return live_bytes_; }
  /// "272 bytes from holdfast-sim+0x12ab4c; ..." of up to `most` live blocks, for addr2line.
  std::string describe_live(unsigned most) const;
  bool owns(const void* p) const noexcept;
  /// Whether any region of the process owns `p`, and which: `delete` tells by address.
  static region_heap* owner_of(const void* p) noexcept;

 private:
  static constexpr unsigned classes = 48;
  std::byte* base_ = nullptr;  // reserved on first use, kept between worlds
  std::size_t used_ = 0;
  std::size_t touched_ = 0;
  std::size_t live_blocks_ = 0;
  std::size_t live_bytes_ = 0;
  void* free_[classes] = {};
  int slot_ = -1;
};

}  // namespace holdfast::sim
