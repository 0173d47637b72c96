// Ownership that is kept because giving it back would be unsafe or untrue.
//
// Why this exists: an unmap that was never answered, a transfer whose fate nobody knows, a release that failed half way
// leave memory that a device may still reach. Such ownership must not be lost, not be given back on a guess, and not be
// given back twice. It stands here, counted and listed, until somebody shows evidence that covers it
// (spec/pinned-memory 4.4, 7.16; spec/binding 5.2, 6.19; spec/elastic-pools 5.1).
//
//   outside --admit--> inside --discharge(evidence that covers it)--> outside: the one who got true settles it
//                        \--- abandon_all, or the quarantine is destroyed ---> abandoned: leaked on purpose
//
// Who admits says what could end it (`quarantine_terms`); what is not named there never does. Whether a piece of
// evidence covers an entry is decided in one place, `evidence::covers`.
//
// Ownership   The quarantine owns nothing and frees nothing. An entry is a base of the owner's object, belongs to one
//             quarantine at a time, and outlives its stay: destroying it inside stops the process. What it stands for
//             is settled by the one caller whose `discharge` answered true, or who finds it in a chain.
// Units       Bytes; times of the host's clock; stamps order entries and fences of one quarantine.
// Threading   Every member from any thread; one mutex, whose place in the order the owner names (a leaf). Evidence may
//             come before its entry: whether an entry is still to be admitted is decided under the owner's own lock.
//             `restate` never brings back what was discharged meanwhile; `admit` would.
// Failure     None: nothing allocates. Evidence that does not cover an entry changes nothing and is an event.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/intrusive_list.hpp>
#include <holdfast/base/lock_class.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/base/thread_annotations.hpp>
#include <holdfast/base/witness.hpp>
#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/mutex.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

class event_log;
class evidence;
class quarantine;

/// What an entry stands for: names for lists, events and sums; the quarantine treats all alike. In the order of the
/// events.
enum class quarantine_kind : std::uint8_t { arena, region, span, allocation, prefix, chunk };
inline constexpr std::size_t quarantine_kinds = 6;
std::string_view name_of(quarantine_kind kind) noexcept;

/// Why it is kept; likewise names only, in the order of the events.
enum class quarantine_reason : std::uint8_t {
  unmap_unknown,
  unmap_timeout,
  unmap_refused,
  not_submitted,
  indeterminate,
  peer_dead,
  owner_dropped,
  abandoned_request,
  enqueue_rejected,
  allocator_refused,
  partial_release,
  partially_unmapped,
  decommit_failed,
  state_corrupt,
  device_lost,
  descriptor_mismatch,
  publication_rejected,
  release_retained,
};
inline constexpr std::size_t quarantine_reasons = 18;
std::string_view name_of(quarantine_reason reason) noexcept;

/// What was observed, in the order of the events. As an index of bits: what an entry accepts.
enum class evidence_kind : std::uint8_t { none, answer, completion, witness, fence, termination };
std::string_view name_of(evidence_kind kind) noexcept;

/// What an entry is, and which evidence ends it. An entry that names none stays until it is abandoned.
struct quarantine_terms {
  quarantine_kind kind{};
  /// Together with the kind the name of exactly one thing of the process.
  std::uint64_t id = 0;
  quarantine_reason reason{};
  std::uint64_t bytes = 0;

  /// The provider's confirmed answer about this very thing.
  bool answer = false;
  /// The completion of this operation; 0: none.
  std::uint64_t operation = 0;
  /// The witness of this life of a transport; epoch 0: none.
  std::uint64_t incarnation = 0;
  std::uint64_t epoch = 0;
  /// Only if the teardown also ended the writes of the transfers that it swept.
  bool needs_gets_fenced = false;
  /// Fences that were recorded after it entered.
  bool fence = false;
  /// The end of this context; 0: none.
  std::uint64_t context = 0;

  /// Bit `evidence_kind` is set if that kind can end the entry.
  std::uint32_t accepts() const noexcept;
};

/// One entry as it stands; a value for lists.
struct quarantine_view {
  quarantine_terms terms;
  std::uint64_t quarantine = 0;
  platform::time_point since{};
  /// Greater than that of everything that entered, and of every fence that was begun, before.
  std::uint64_t stamp = 0;
};

/// Permission to record fences for one entry, made after it entered. Move-only.
class [[nodiscard]] fence_request {
 public:
  fence_request(fence_request&& other) noexcept
      : quarantine_(other.quarantine_), id_(other.id_), stamp_(std::exchange(other.stamp_, 0)), kind_(other.kind_) {}
  fence_request& operator=(fence_request&&) = delete;
  std::uint64_t id() const noexcept { return id_; }
  /// 0 after a move.
  std::uint64_t stamp() const noexcept { return stamp_; }

 private:
  friend class quarantine;
  friend class evidence;
  fence_request(std::uint64_t quarantine, quarantine_kind kind, std::uint64_t id, std::uint64_t stamp) noexcept
      : quarantine_(quarantine), id_(id), stamp_(stamp), kind_(kind) {}
  std::uint64_t quarantine_;
  std::uint64_t id_;
  std::uint64_t stamp_;
  quarantine_kind kind_;
};

/// How a context was seen to end, in the order of `termination` of the binding's events.
enum class termination : std::uint8_t { context_destroyed, device_reset, process_ended };

/// A value that says what was observed, about exactly one subject. Each factory takes the observation's own result: a
/// failure proves nothing. Made by default or moved from it proves nothing. Presenting it again is harmless.
class evidence {
 public:
  evidence() noexcept = default;
  evidence(evidence&& other) noexcept { *this = std::move(other); }
  evidence& operator=(evidence&& other) noexcept;

  /// The provider answered, for this very thing. `confirmed` false (refused, unknown): proves nothing.
  static evidence answered(quarantine_kind kind, std::uint64_t id, bool confirmed) noexcept;
  /// The operation's own completion came, with any status that says the device is done.
  static evidence completed(std::uint64_t operation) noexcept;
  /// Worker and context of a transport are gone.
  static evidence transport_gone(const witness& gone) noexcept;
  /// All fences that were recorded after `request` was made have passed. False, or a spent request: proves nothing.
  static evidence fences_passed(fence_request request, bool all_completed) noexcept;
  /// `context` ended; `who` observed it (a literal). `succeeded` false (the destroying call failed, nobody was reaped):
  /// proves nothing. A driver's error code that says "gone" is a sign and no observation.
  static evidence terminated(std::uint64_t context, termination how, const char* who, bool succeeded) noexcept;

  evidence_kind kind() const noexcept { return kind_; }
  /// By kind: id, operation, epoch, stamp of the fences, context; 0 if it proves nothing.
  std::uint64_t subject() const noexcept { return subject_; }
  /// Who observed a termination, and how; for the record.
  const char* who() const noexcept { return who_; }
  termination how() const noexcept { return how_; }
  /// Whether it ends the stay of `entry`: the entry names this kind, and every part of the subject is equal.
  bool covers(const quarantine_view& entry) const noexcept;

 private:
  // Tests want a witness's evidence without a transport; nothing of the library defines this.
  friend struct forged_evidence;
  evidence(evidence_kind kind, std::uint64_t subject) noexcept : kind_(kind), subject_(subject) {}

  evidence_kind kind_ = evidence_kind::none;
  quarantine_kind about_{};   // answer, fence
  bool gets_fenced_ = false;  // witness
  termination how_{};         // termination
  std::uint64_t subject_ = 0;
  std::uint64_t scope_ = 0;       // witness: incarnation; fence: id
  std::uint64_t quarantine_ = 0;  // fence: stamps of another quarantine mean nothing
  const char* who_ = "";
};

struct quarantine_hook;

/// Base of the object that owns what is kept.
class quarantine_entry : public list_hook<quarantine_hook> {
 public:
  /// Set by `admit`. To be read by who took it out, and by its owner while nobody else can change it.
  const quarantine_view& view() const noexcept { return view_; }

 protected:
  quarantine_entry() noexcept = default;
  ~quarantine_entry();

 private:
  friend class quarantine;
  enum class state : std::uint8_t { outside, inside, abandoned };
  // Guarded by the mutex of the quarantine that it is in.
  state state_ = state::outside;
  quarantine* home_ = nullptr;
  quarantine_view view_;
};

/// Entries that left together, oldest first, to be settled one by one outside the lock. Must be emptied.
using quarantine_chain = intrusive_list<quarantine_entry, quarantine_hook>;

struct quarantine_sum {
  std::uint64_t entries = 0;
  /// Stays at its maximum as long as the sum does not fit.
  std::uint64_t bytes = 0;
  bool operator==(const quarantine_sum&) const = default;
};

/// One instant.
struct quarantine_totals {
  quarantine_sum inside;
  quarantine_sum by_kind[quarantine_kinds];
  quarantine_sum by_reason[quarantine_reasons];
  /// Leaked on purpose so far; not in the sums above.
  quarantine_sum abandoned;
};

class quarantine {
 public:
  /// `id` names the quarantine in events and in fences, unique in the process. `rank` is the class of its mutex.
  /// `first_stamp` is above 0.
  quarantine(std::uint64_t id, event_log& log, const lock_class& rank = lock_ranks::base_quarantine,
             std::uint64_t first_stamp = 1) noexcept;
  /// What is left is abandoned: an error event with count and bytes. Nothing is freed.
  ~quarantine();
  quarantine(const quarantine&) = delete;
  quarantine& operator=(const quarantine&) = delete;

  /// True: it entered, with the next stamp. False: it was inside, and only its reason changed; or it was abandoned,
  /// and nothing changed. An entry that another quarantine or a chain holds stops the process.
  bool admit(quarantine_entry& entry, const quarantine_terms& terms, platform::time_point now) noexcept;
  /// Changes why an entry is kept, nothing else. False: it is not inside.
  bool restate(quarantine_entry& entry, quarantine_reason reason) noexcept;
  /// Takes the entry out if `shown` covers it. True for exactly one caller, who settles what it stands for. False: it
  /// is not inside, or `shown` does not cover it.
  bool discharge(quarantine_entry& entry, const evidence& shown) noexcept;
  /// Takes out every entry that `shown` covers and appends it to `out`, which is the caller's alone. Answers how many.
  std::size_t discharge_all(const evidence& shown, quarantine_chain& out) noexcept;
  /// Gives up one: no evidence for it will come. What it stands for is never freed; the object may go. False: it is not
  /// inside.
  bool abandon(quarantine_entry& entry) noexcept;
  /// Gives up all entries: no evidence will come. Appends them to `out`; what they stand for is never freed. One error
  /// event if there was any. Answers how many.
  std::size_t abandon_all(quarantine_chain& out) noexcept;

  /// Fences are to be recorded after this call. Empty: it is not inside, or fences do not end it, or the stamps are
  /// used up (no fence proves anything from then on).
  std::optional<fence_request> begin_fence(quarantine_entry& entry) noexcept;

  std::uint64_t id() const noexcept { return id_; }
  bool holds(const quarantine_entry& entry) const noexcept;
  quarantine_totals totals() const noexcept;
  /// Writes as many as fit, oldest first. Answers how many there are: if that is more, the list grew, try again.
  std::size_t snapshot_into(std::span<quarantine_view> into) const noexcept;

 private:
  // Exact although a sum of lengths may leave 64 bits.
  struct wide_sum {
    std::uint64_t entries = 0;
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    void add(std::uint64_t bytes) noexcept;
    void subtract(std::uint64_t bytes) noexcept;
    quarantine_sum value() const noexcept;
  };
  bool is_inside(const quarantine_entry& entry) const noexcept HOLDFAST_REQUIRES(mutex_);
  std::uint64_t next_stamp() noexcept HOLDFAST_REQUIRES(mutex_);
  void change_reason(quarantine_entry& entry, quarantine_reason reason) noexcept HOLDFAST_REQUIRES(mutex_);
  void take_out(quarantine_entry& entry, const evidence& shown) noexcept HOLDFAST_REQUIRES(mutex_);
  void give_up(quarantine_entry& entry) noexcept HOLDFAST_REQUIRES(mutex_);
  void uncount(const quarantine_terms& terms) noexcept HOLDFAST_REQUIRES(mutex_);

  const std::uint64_t id_;
  event_log& log_;
  mutable platform::mutex mutex_;
  std::uint64_t stamp_ HOLDFAST_GUARDED_BY(mutex_);
  wide_sum inside_ HOLDFAST_GUARDED_BY(mutex_);
  wide_sum by_kind_[quarantine_kinds] HOLDFAST_GUARDED_BY(mutex_);
  wide_sum by_reason_[quarantine_reasons] HOLDFAST_GUARDED_BY(mutex_);
  wide_sum abandoned_ HOLDFAST_GUARDED_BY(mutex_);
  mutable quarantine_chain list_ HOLDFAST_GUARDED_BY(mutex_);
};

}  // namespace holdfast::inline HOLDFAST_ABI
