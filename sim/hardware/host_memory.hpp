// Pages of one simulated host: who owns them, who registered them, what stands in them.
//
// Why this exists: the one catastrophe of the project is a device that writes into memory which is not its
// operation's any more. Here every access of a device is checked against ownership and registration, which are kept
// outside the bytes, so that no overwritten byte can hide it.
//
// Faults it makes: the system refuses pages or a tombstone (points pages.allocate, pages.tombstone). No others: bytes
// do not rot and addresses do not move, because nothing above could notice or answer that.
//
// Ownership   One for each life of a host; the host owns it. Blocks belong to the program that allocated them until
//             `free` or `tombstone`; registrations to the device. A crash drops everything.
// Units       Bytes. Blocks are numbered from 1 for each host, over all its lives; addresses stand in no event.
// Threading   One OS thread. Callable in and out of kernel scope; no scheduling point.
// Failure     What a program may not do is a violation: W-1 (a device reached pages that are not owned and
//             registered), W-2 (pages given back although a registration is not confirmed gone), W-3 (a transfer
//             wrote another tenant's bytes), "page misuse" (double, foreign or torn free).
#pragma once

#include <sim/kernel/world.hpp>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <vector>

namespace holdfast::sim {

/// A pointer without its address.
struct memory_place {
  std::uint32_t block = 0;  // 0: no block of this host, now or lately
  std::uint64_t offset = 0;
};

/// What stands between the program and the device about one registration.
enum class pin_state : std::uint8_t {
  live,          // registered
  unconfirmed,   // a deregistration was asked for and not answered, or answered with an error
  claimed_gone,  // the program was told that it is gone; `held` says whether that was true
};

/// One registration as the kernel keeps it: the pages stay physically where they are as long as it is held.
struct pin {
  std::uint64_t number = 0;  // from 1 for each host
  std::uint32_t block = 0;   // the block at registration; its pages, whatever is at the address now
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  std::uint64_t context = 0;
  pin_state state = pin_state::live;
  bool held = true;
};

/// Told of every write of a device, before the bytes change. Kernel scope.
class dma_observer {
 public:
  virtual void on_dma_write(host& h, memory_place where, std::size_t bytes, std::uint64_t request) = 0;

 protected:
  ~dma_observer() = default;
};

/// What a transfer was admitted to write: recorded when it is posted, compared when bytes arrive.
struct dma_admission {
  std::uint64_t request = 0;  // identity in events
  std::uint64_t tag = 0;      // tenant of the destination when it was posted
};

class host_memory {
 public:
  explicit host_memory(host& h);
  ~host_memory();
  host_memory(const host_memory&) = delete;
  host_memory& operator=(const host_memory&) = delete;

  // The program's side --------------------------------------------------------------------------------------
  /// Bytes of a page of this machine's system: 4 KiB, or what a test made them, a power of two up to 64 KiB, before the
  /// first allocation.
  std::size_t page_bytes() const noexcept { return page_bytes_; }
  void set_page_bytes(std::size_t bytes) noexcept { page_bytes_ = bytes; }
  /// Zeroed pages, first fit. `bytes` a multiple of a page. The error is an errno value.
  std::expected<std::byte*, int> allocate(std::size_t bytes);
  /// Gives a whole block back; its addresses may be granted again at once.
  void free(std::byte* base, std::size_t bytes);
  /// Gives a whole block back, but its addresses read as zeros and are not granted again in this life.
  /// False: could not, nothing changed.
  bool tombstone(std::byte* base, std::size_t bytes);

  // Questions -----------------------------------------------------------------------------------------------
  /// The block that covers `p`, or the last one that did.
  memory_place name_of(const void* p) const noexcept;
  /// Every byte of the range belongs to one block that the program owns.
  bool owned(const void* p, std::size_t bytes) const noexcept;
  bool is_tombstone(const void* p, std::size_t bytes) const noexcept;
  /// "b block 3 offset 8192", for reports.
  std::string describe(const void* p) const;
  std::uint64_t owned_bytes() const noexcept { return owned_bytes_; }
  std::size_t owned_blocks() const noexcept { return owned_blocks_; }
  std::uint64_t tombstone_bytes() const noexcept { return tombstone_bytes_; }

  // Tenants (W-3) -------------------------------------------------------------------------------------------
  /// From here on the bytes belong to tenant `tag`; 0 = nobody's. Fed by checks from the event stream.
  void tag_range(const void* p, std::size_t bytes, std::uint64_t tag);
  /// Tag of the first byte.
  std::uint64_t tag_of(const void* p) const noexcept;
  /// Bytes of a block by name, for feeders that know blocks from events. Null: no such living block.
  std::byte* address_of(std::uint32_t block, std::uint64_t offset = 0) const noexcept;

  // The device's side ---------------------------------------------------------------------------------------
  /// Enters a registration. The range must be owned. Answers its number.
  std::uint64_t add_pin(std::byte* base, std::size_t bytes, std::uint64_t context);
  pin* find_pin(std::uint64_t number) noexcept;
  /// A deregistration begins: from now on it is not live, and not confirmed gone.
  void begin_unpin(std::uint64_t number) noexcept;
  /// The program was told that it is gone. `truly` false: the device holds the pages all the same.
  void claim_unpinned(std::uint64_t number, bool truly);
  /// The kernel lets go of everything that a context registered. Answers how many registrations it still held.
  std::size_t drop_pins(std::uint64_t context);
  /// Registrations that the device holds, the secretly surviving ones included.
  std::size_t held_pins() const noexcept;
  std::uint64_t held_bytes() const noexcept;
  /// A registration that is not confirmed gone covers the whole range. `number` 0: any.
  bool registered(const void* p, std::size_t bytes, std::uint64_t number = 0) const noexcept;

  dma_admission admit(std::uint64_t request, const void* destination) const noexcept;
  /// A device writes. False: not allowed, W-1 or W-3 was reported and no byte changed.
  bool dma_write(std::byte* to, const std::byte* from, std::size_t bytes, std::uint64_t registration,
                 const dma_admission& admission);
  /// A device, or a progress call on its behalf, reads. `must_be_registered` false: an emulated lane, where nobody
  /// looks at a key. False: not allowed, W-1 was reported and `to` is zeros.
  bool dma_read(std::byte* to, const std::byte* from, std::size_t bytes, std::uint64_t registration,
                bool must_be_registered);
  /// Stays over crashes of the host.
  void observe_dma(dma_observer& observer);

 private:
  enum class block_state : std::uint8_t { owned, tombstone };
  struct block {
    std::uint32_t number;
    std::size_t bytes;
    block_state state;
  };
  struct dead_block {
    std::uint32_t number;
    std::byte* base;
    std::size_t bytes;
  };
  struct tagged {
    std::uintptr_t end;
    std::uint64_t tag;
  };
  using block_map = std::map<std::byte*, block>;

  block_map::const_iterator covering(const void* p, std::size_t bytes) const noexcept;
  block_map::iterator take_back(std::byte* base, std::size_t bytes, const char* how);
  const pin* refusing_pin(std::uint32_t block) const noexcept;
  void bury(std::byte* base, const block& b);

  std::size_t page_bytes_ = 4096;
  host& host_;
  std::byte* slot_base_ = nullptr;
  std::size_t slot_bytes_ = 0;
  // Ordered by address: every host lays out its slot alone, so the order is the same in every run.
  block_map blocks_;
  std::vector<dead_block> dead_;  // the last ones, for reports
  std::map<std::uint64_t, pin> pins_;
  std::map<std::uintptr_t, tagged> tags_;
  /// What outlives a crash: numbers are never given twice in a run, and observers stay.
  struct history {
    std::uint32_t next_block = 1;
    std::uint64_t next_pin = 1;
    std::vector<dma_observer*> observers;
  };
  static history& history_of(host& h);
  history& history_;
  std::uint64_t owned_bytes_ = 0;
  std::size_t owned_blocks_ = 0;
  std::uint64_t tombstone_bytes_ = 0;
};

/// The memory of `h`, made on first use.
host_memory& memory_of(host& h);

}  // namespace holdfast::sim
