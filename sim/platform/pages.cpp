#include <holdfast/platform/pages.hpp>

#include <sim/hardware/host_memory.hpp>
#include <sim/platform/side.hpp>

#include <cerrno>

namespace holdfast::inline HOLDFAST_ABI::platform {

namespace {
sim::host& here() noexcept {
  const sim::world* const w = sim::kernel_access::the_world();
  if (w == nullptr || w->running_host() == nullptr) sim::misuse("pages were used outside any host");
  return *w->running_host();
}
}  // namespace

std::size_t pages::page_size() const noexcept { return sim::memory_of(here()).page_bytes(); }

std::expected<std::byte*, int> pages::allocate(std::size_t bytes) noexcept {
  sim::host& machine = here();
  sim::kernel_scope kernel;
  return sim::memory_of(machine).allocate(bytes);
}

void pages::free(std::byte* base, std::size_t bytes) noexcept {
  sim::host& machine = here();
  sim::kernel_scope kernel;
  sim::memory_of(machine).free(base, bytes);
}

bool pages::tombstone(std::byte* base, std::size_t bytes) noexcept {
  sim::host& machine = here();
  sim::kernel_scope kernel;
  return sim::memory_of(machine).tombstone(base, bytes);
}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
