#include <sim/hardware/address_space.hpp>

#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <vector>

#if defined(HOLDFAST_ASAN)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(low, bytes) ((void)(low), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(low, bytes) ((void)(low), (void)(bytes))
#endif

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace holdfast::sim {

namespace {

constexpr std::size_t reserved_bytes = std::size_t{64} << 30;
constexpr std::size_t large_slot_bytes = std::size_t{1} << 30;
constexpr std::size_t small_slot_bytes = std::size_t{32} << 20;
constexpr std::size_t large_slots = 32;
constexpr std::size_t small_slots = (reserved_bytes - large_slots * large_slot_bytes) / small_slot_bytes;
constexpr std::size_t granule_bytes = 64 * 1024;
constexpr std::size_t page_bytes = 4096;
// Up to here every page is cleared; above, the kernel is asked which pages were touched.
constexpr std::size_t clear_whole_max = 512 * 1024;

// No base suits every build and kernel: low ones are AddressSanitizer's shadow, others ThreadSanitizer's.
constexpr std::array<std::uintptr_t, 4> bases = {0x7e9000000000, 0x7ea000000000, 0x7eb000000000, 0x600000000000};

void device_clear(std::byte* base, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  asm volatile("rep stosb" : "+D"(base), "+c"(bytes) : "a"(0) : "memory");
#else
  for (volatile std::byte* p = base; bytes != 0; --bytes) *p++ = std::byte{0};
#endif
}

}  // namespace

void device_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
  volatile std::byte* t = to;
  const volatile std::byte* f = from;
  for (; bytes != 0; --bytes) *t++ = *f++;
#endif
}

address_space& address_space::get() {
  static auto* const made = new address_space;
  return *made;
}

address_space::address_space() {
  for (const std::uintptr_t candidate : bases) {
    void* const at = mmap(reinterpret_cast<void*>(candidate), reserved_bytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED) continue;
    // A kernel that does not know the flag takes the address as a hint.
    if (at != reinterpret_cast<void*>(candidate)) {
      munmap(at, reserved_bytes);
      continue;
    }
    base_ = static_cast<std::byte*>(at);
    // A huge page would make 2 MiB look touched where one byte was.
    madvise(base_, reserved_bytes, MADV_NOHUGEPAGE);
    return;
  }
  std::fprintf(stderr, "holdfast-sim: cannot reserve %zu GiB of address space for simulated memory (ulimit -v?)\n",
               reserved_bytes >> 30);
  std::abort();
}

std::span<std::byte> address_space::slot(std::uint16_t host_index) const noexcept {
  if (host_index < large_slots) return {base_ + host_index * large_slot_bytes, large_slot_bytes};
  const std::size_t small = host_index - large_slots;
  if (small >= small_slots) return {};
  return {base_ + large_slots * large_slot_bytes + small * small_slot_bytes, small_slot_bytes};
}

bool address_space::grant(std::byte* base, std::size_t bytes) {
  // One bit for each granule that was ever opened, for the life of the process.
  static auto* const opened = new std::vector<bool>(reserved_bytes / granule_bytes, false);
  const std::size_t first = static_cast<std::size_t>(base - base_) / granule_bytes;
  const std::size_t last = (static_cast<std::size_t>(base - base_) + bytes - 1) / granule_bytes;
  bool used = false;
  for (std::size_t g = first; g <= last;) {
    if ((*opened)[g]) {
      used = true;
      ++g;
      continue;
    }
    std::size_t end = g;
    while (end <= last && !(*opened)[end]) ++end;
    if (mprotect(base_ + g * granule_bytes, (end - g) * granule_bytes, PROT_READ | PROT_WRITE) != 0) return false;
    for (; g < end; ++g) (*opened)[g] = true;
  }
  ASAN_UNPOISON_MEMORY_REGION(base, bytes);
  if (used) clear(base, bytes);
  return true;
}

void address_space::withdraw(std::byte* base, std::size_t bytes) noexcept {
  // Only a sanitizer build does anything here.
  ASAN_POISON_MEMORY_REGION(base, bytes);
}

void address_space::clear(std::byte* base, std::size_t bytes) noexcept {
  if (bytes <= clear_whole_max) {
    device_clear(base, bytes);
    return;
  }
  // The range is page-aligned: blocks are.
  std::array<unsigned char, 4096> resident;
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t part = std::min(bytes - at, resident.size() * page_bytes);
    const std::size_t pages = (part + page_bytes - 1) / page_bytes;
    if (mincore(base + at, part, resident.data()) != 0) {
      device_clear(base + at, part);
    } else {
      for (std::size_t page = 0; page < pages; ++page) {
        if ((resident[page] & 1) != 0) device_clear(base + at + page * page_bytes, page_bytes);
      }
    }
    at += part;
  }
}

}  // namespace holdfast::sim
