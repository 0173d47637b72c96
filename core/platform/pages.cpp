#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/pages.hpp>

#include <holdfast/platform/stop_process.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace holdfast::inline HOLDFAST_ABI::platform {

std::size_t pages::page_size() const noexcept {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::expected<std::byte*, int> pages::allocate(std::size_t bytes) noexcept {
  if (bytes == 0 || bytes % page_size() != 0) return std::unexpected(EINVAL);
  void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return std::unexpected(errno);
  // A child that touched a page first would take the copy that the device knows. Unmapping ends the mark too,
  // and neighbors with the mark merge, so the process's count of mappings comes back.
  if (::madvise(base, bytes, MADV_DONTFORK) != 0) {
    const int refused = errno;
    ::munmap(base, bytes);
    return std::unexpected(refused);
  }
  return static_cast<std::byte*>(base);
}

void pages::free(std::byte* base, std::size_t bytes) noexcept {
  if (::munmap(base, bytes) == 0) return;
  // The process is out of mappings, and taking a piece out of one would make another. The addresses stay ours
  // for ever then; the memory need not.
  if (errno == ENOMEM && ::madvise(base, bytes, MADV_DONTNEED) == 0) return;
  stop_process("pages: freed a range that was never allocated");
}

bool pages::tombstone(std::byte* base, std::size_t bytes) noexcept {
  if (bytes == 0 || bytes % page_size() != 0) return false;
  // In one call, so that nobody else can get the addresses between two. Linux checks its limits before it takes
  // the old mapping away.
  void* const put = ::mmap(base, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return put != MAP_FAILED;
}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
