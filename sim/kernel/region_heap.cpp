#include <sim/kernel/region_heap.hpp>

#include <sim/kernel/kernel_scope.hpp>

#include <dlfcn.h>
#include <sys/mman.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#if defined(HOLDFAST_ASAN)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(low, bytes) ((void)(low), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(low, bytes) ((void)(low), (void)(bytes))
#endif

namespace holdfast::sim {

namespace {

constexpr std::size_t slot_bytes = std::size_t{256} << 20;
constexpr std::size_t slots_max = 1100;
constexpr std::size_t header_bytes = 16;

// One reservation for all regions, so that "is this address a region's, and whose" is one subtraction.
struct reservation {
  std::byte* base = nullptr;
  region_heap* owners[slots_max] = {};
  std::vector<int> free_slots;
  int next_slot = 0;
};

reservation& all() {
  static auto* const made = [] {
    auto* const r = new reservation;
    void* const base = mmap(nullptr, slot_bytes * slots_max, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
      std::fprintf(stderr, "holdfast-sim: cannot reserve %zu GiB of address space for simulated heaps (ulimit -v?)\n",
                   (slot_bytes * slots_max) >> 30);
      std::abort();
    }
    r->base = static_cast<std::byte*>(base);
    return r;
  }();
  return *made;
}

constinit std::byte* region_base = nullptr;  // copy of reservation::base: `owner_of` runs in every delete

struct header {
  std::uint32_t size_class;
  std::uint32_t magic;
  const void* site;
};
static_assert(sizeof(header) == header_bytes);
constexpr std::uint32_t live_magic = 0x11feb10cu;
constexpr std::uint32_t free_magic = 0xf4eeb10cu;

unsigned class_of(std::size_t bytes) noexcept {
  if (bytes <= 512) return bytes == 0 ? 0 : static_cast<unsigned>((bytes + 15) / 16 - 1);
  return 32 + static_cast<unsigned>(std::bit_width(bytes - 1)) - 10;
}
std::size_t class_bytes(unsigned c) noexcept {
  return c < 32 ? (c + 1) * std::size_t{16} : std::size_t{1} << (c - 32 + 10);
}

}  // namespace

region_heap::~region_heap() {
  if (slot_ < 0) return;
  reset();
  all().owners[slot_] = nullptr;
  all().free_slots.push_back(slot_);
}

void* region_heap::allocate(std::size_t bytes, std::size_t alignment, const void* site) noexcept {
  if (slot_ < 0) {
    kernel_scope kernel;  // the bookkeeping below allocates, and must not come back here
    auto& r = all();
    if (!r.free_slots.empty()) {
      slot_ = r.free_slots.back();
      r.free_slots.pop_back();
    } else if (r.next_slot < static_cast<int>(slots_max)) {
      slot_ = r.next_slot++;
    } else {
      return nullptr;
    }
    r.owners[slot_] = this;
    region_base = r.base;
    base_ = r.base + static_cast<std::size_t>(slot_) * slot_bytes;
  }
  if (bytes > slot_bytes / 2) return nullptr;
  const unsigned c = class_of(bytes);
  std::byte* block = nullptr;
  if (alignment <= 16 && free_[c] != nullptr) {
    block = static_cast<std::byte*>(free_[c]);
    ASAN_UNPOISON_MEMORY_REGION(block, class_bytes(c));
    std::memcpy(&free_[c], block, sizeof(void*));
  } else {
    std::size_t start = used_ + header_bytes;
    if (alignment > 16) start = (start + alignment - 1) & ~(alignment - 1);
    const std::size_t end = start + class_bytes(c);
    if (end > slot_bytes) return nullptr;
    used_ = end;
    if (used_ > touched_) touched_ = used_;
    block = base_ + start;
    ASAN_UNPOISON_MEMORY_REGION(block - header_bytes, header_bytes + class_bytes(c));
  }
  race::acquire(block);
  const header h{c, live_magic, site};
  std::memcpy(block - header_bytes, &h, sizeof(h));
  ++live_blocks_;
  live_bytes_ += class_bytes(c);
  return block;
}

void region_heap::release(void* p) noexcept {
  auto* const block = static_cast<std::byte*>(p);
  header h;
  std::memcpy(&h, block - header_bytes, sizeof(h));
  // The object outlives its run, so an address beyond what this run handed out is of an earlier one.
  if (h.magic != live_magic || static_cast<std::size_t>(block - base_) >= used_) {
    std::fprintf(stderr, "holdfast-sim: %s of a block of a simulated heap\n",
                 h.magic == free_magic ? "double delete" : "delete inside or after the end");
    std::abort();
  }
  race::release(block);
  --live_blocks_;
  live_bytes_ -= class_bytes(h.size_class);
  h.magic = free_magic;
  std::memcpy(block - header_bytes, &h, sizeof(h));
  std::memcpy(block, &free_[h.size_class], sizeof(void*));
  free_[h.size_class] = block;
  ASAN_POISON_MEMORY_REGION(block, class_bytes(h.size_class));
}

void region_heap::reset() noexcept {
  if (slot_ < 0) return;
  ASAN_POISON_MEMORY_REGION(base_, touched_);
  // A large region is given back, a small one is kept: most worlds touch a few kilobytes.
  if (touched_ > (std::size_t{8} << 20)) {
    madvise(base_, touched_, MADV_DONTNEED);
    touched_ = 0;
  }
  used_ = 0;
  live_blocks_ = 0;
  live_bytes_ = 0;
  for (auto& list : free_) list = nullptr;
}

std::string region_heap::describe_live(unsigned most) const {
  std::string out;
  // Headers stand at multiples of 16. Only at the end of a run that leaked, so a scan will do.
  for (std::size_t at = 0; at + header_bytes <= used_ && most != 0; at += 16) {
    header h;
    ASAN_UNPOISON_MEMORY_REGION(base_ + at, header_bytes);
    std::memcpy(&h, base_ + at, sizeof(h));
    if (h.magic != live_magic || h.size_class >= classes) continue;
    Dl_info where{};
    if (h.site == nullptr || dladdr(h.site, &where) == 0) continue;
    // Relative to the program's base: the same in every process.
    char text[160];
    const char* const slash = std::strrchr(where.dli_fname, '/');
    std::snprintf(
        text, sizeof(text), "%s%zu bytes from %s+0x%zx", out.empty() ? "" : "; ", class_bytes(h.size_class),
        slash != nullptr ? slash + 1 : where.dli_fname,
        static_cast<std::size_t>(static_cast<const char*>(h.site) - static_cast<const char*>(where.dli_fbase)));
    out += text;
    --most;
  }
  return out;
}

bool region_heap::owns(const void* p) const noexcept {
  return base_ != nullptr && p >= base_ && p < base_ + slot_bytes;
}

region_heap* region_heap::owner_of(const void* p) noexcept {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(p) - region_base);
  if (region_base == nullptr || offset >= slot_bytes * slots_max) return nullptr;
  return all().owners[offset / slot_bytes];
}

}  // namespace holdfast::sim
