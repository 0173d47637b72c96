// operator new and delete of simulator programs: code on a fiber is served from its host's region, everything else
// from malloc. `delete` tells the two apart by address, so memory may be freed in either scope.
#include <sim/kernel/fiber.hpp>
#include <sim/kernel/region_heap.hpp>

#include <cstdlib>
#include <new>

namespace {

void* take(std::size_t bytes, std::size_t alignment, const void* site) noexcept {
  using namespace holdfast::sim;
  if (kernel_access::scheduling()) return world::current().running()->owner->heap.allocate(bytes, alignment, site);
  if (bytes == 0) bytes = 1;
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return std::malloc(bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* take_or_throw(std::size_t bytes, std::size_t alignment, const void* site) {
  void* const p = take(bytes, alignment, site);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

void give(void* p) noexcept {
  if (p == nullptr) return;
  if (auto* const region = holdfast::sim::region_heap::owner_of(p))
    region->release(p);
  else
    std::free(p);
}

constexpr std::size_t ordinary = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

void* operator new(std::size_t n) { return take_or_throw(n, ordinary, __builtin_return_address(0)); }
void* operator new[](std::size_t n) { return take_or_throw(n, ordinary, __builtin_return_address(0)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return take(n, ordinary, __builtin_return_address(0));
}
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return take(n, ordinary, __builtin_return_address(0));
}
void* operator new(std::size_t n, std::align_val_t a) {
  return take_or_throw(n, static_cast<std::size_t>(a), __builtin_return_address(0));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return take_or_throw(n, static_cast<std::size_t>(a), __builtin_return_address(0));
}
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return take(n, static_cast<std::size_t>(a), __builtin_return_address(0));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return take(n, static_cast<std::size_t>(a), __builtin_return_address(0));
}
void operator delete(void* p) noexcept { give(p); }
void operator delete[](void* p) noexcept { give(p); }
void operator delete(void* p, std::size_t) noexcept { give(p); }
void operator delete[](void* p, std::size_t) noexcept { give(p); }
void operator delete(void* p, std::align_val_t) noexcept { give(p); }
void operator delete[](void* p, std::align_val_t) noexcept { give(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { give(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { give(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { give(p); }
