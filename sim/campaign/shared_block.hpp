// Memory that a process shares with its children.
//
// Why this exists: counters of a worker must survive its death.
//
// Ownership   Unmapped by the destructor. Units: bytes. Threading: the contents are atomics.
// Failure     The constructor throws std::system_error.
#pragma once

#include <cerrno>
#include <cstddef>
#include <sys/mman.h>
#include <system_error>

namespace holdfast::sim {

class shared_block {
 public:
  /// Zeroed.
  explicit shared_block(std::size_t bytes)
      : bytes_(bytes), start_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (start_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  }
  ~shared_block() { munmap(start_, bytes_); }
  shared_block(const shared_block&) = delete;
  shared_block& operator=(const shared_block&) = delete;
  std::byte* start() const noexcept { return static_cast<std::byte*>(start_); }

 private:
  std::size_t bytes_;
  void* start_;
};

}  // namespace holdfast::sim
