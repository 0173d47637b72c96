#include <sim/kernel/stack_pool.hpp>

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#if defined(HOLDFAST_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace holdfast::sim {

namespace {
// Sanitizers spend several times the stack of a plain build.
#if defined(HOLDFAST_ASAN) || defined(HOLDFAST_TSAN)
constexpr std::size_t stack_bytes = 1024 * 1024;
#else
constexpr std::size_t stack_bytes = 256 * 1024;
#endif
constexpr std::size_t guard_bytes = stack_guard_bytes;

// Never destroyed: worlds may end in static destruction.
std::vector<stack_memory>& pool() {
  static auto* const free_stacks = new std::vector<stack_memory>;
  return *free_stacks;
}
}  // namespace

stack_memory acquire_stack() {
  auto& free_stacks = pool();
  if (!free_stacks.empty()) {
    const stack_memory stack = free_stacks.back();
    free_stacks.pop_back();
    return stack;
  }
  void* const base = mmap(nullptr, stack_bytes + guard_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED || mprotect(base, guard_bytes, PROT_NONE) != 0) {
    std::fprintf(stderr, "holdfast-sim: no memory for a fiber's stack of %zu bytes (vm.max_map_count?)\n", stack_bytes);
    std::abort();
  }
  return {static_cast<std::byte*>(base) + guard_bytes, stack_bytes};
}

void unpoison_stack([[maybe_unused]] stack_memory stack) noexcept {
#if defined(HOLDFAST_ASAN)
  ASAN_UNPOISON_MEMORY_REGION(stack.low, stack.bytes);
#endif
}

void release_stack(stack_memory stack) noexcept { pool().push_back(stack); }

}  // namespace holdfast::sim
