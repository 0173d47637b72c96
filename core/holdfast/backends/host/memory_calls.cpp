#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/host/memory_calls.hpp>

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>

namespace holdfast::inline HOLDFAST_ABI {

namespace {

int lock_range(const void* address, std::size_t bytes) noexcept { return ::mlock(address, bytes) == 0 ? 0 : errno; }

int unlock_range(const void* address, std::size_t bytes) noexcept { return ::munlock(address, bytes) == 0 ? 0 : errno; }

std::uint64_t lock_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

constexpr memory_calls system_calls{lock_range, unlock_range, lock_limit};

}  // namespace

const memory_calls& system_memory_calls() noexcept { return system_calls; }

}  // namespace holdfast::inline HOLDFAST_ABI
