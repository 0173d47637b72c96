// One range of granules of one arena, and the two kinds of owners it may have.
//
// Why this exists: a buffer that its caller dropped may still be written by a device. So the range is owned by the
// buffer and by each transfer alike, and only the last owner gives the granules back (spec/pinned-memory 4.4).
//
// Ownership   Shared, counted in the span. The span object carries the node of the suballocator, so that neither
//             cutting nor giving back allocates; objects are kept by their arena and used again.
// Units       Bytes and granules.
// Threading   Owners may be dropped on any thread. No device call, no suspension.
// Failure     None.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/extent_index.hpp>
#include <holdfast/base/intrusive_list.hpp>
#include <holdfast/base/quarantine.hpp>
#include <holdfast/platform/ref_count.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace holdfast::inline HOLDFAST_ABI::pinned {

class arena;
struct span_hook;

class span final : public extent_node, public list_hook<span_hook> {
 public:
  /// An object for a later cut; null if host memory is out (site "pinned.span").
  static span* make() noexcept;
  /// For an object that no arena took.
  static void unmake(span* unused) noexcept { delete unused; }

  arena& owner() const noexcept { return *owner_; }
  std::byte* data() const noexcept { return data_; }
  std::size_t length() const noexcept { return length_; }
  std::uint64_t id() const noexcept { return id_; }

  /// For who owns a share already.
  void add_owner() noexcept { owners_.increment(); }
  /// The last owner gives the granules back to the arena they came from. The only way back.
  void drop_owner() noexcept;

 private:
  friend class arena;
  span() noexcept = default;

  platform::ref_count owners_{0};
  arena* owner_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t length_ = 0;
  std::uint64_t id_ = 0;
  span* next_unused_ = nullptr;       // chain of objects that nothing uses
  span* next_quarantined_ = nullptr;  // chain of spans whose share the quarantine has
  // Last: only a span whose fate is unknown ever touches it.
  struct kept final : quarantine_entry {
    explicit kept(span& of) noexcept : of(of) {}
    span& of;
  };
  kept kept_{*this};
};

/// An owner that keeps the range from being used again while a device may write it, without access to the bytes.
class transfer_hold {
 public:
  transfer_hold() noexcept = default;
  /// Counts as in flight, then shares `held`. Empty if the arena left service.
  static transfer_hold take(span& held) noexcept;
  transfer_hold(transfer_hold&& other) noexcept;
  transfer_hold& operator=(transfer_hold&& other) noexcept;
  ~transfer_hold() { drop(); }

  explicit operator bool() const noexcept { return span_ != nullptr; }
  /// The device is done with the range.
  void drop() noexcept;
  /// Nobody knows whether the device of `operation` is done: the share stays with the quarantine. `entered`: the span
  /// is there already.
  void drop_into_quarantine(std::uint64_t operation, bool entered) noexcept;

 private:
  span* span_ = nullptr;
};

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
