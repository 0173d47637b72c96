// A program that uses one pool: buffers by slot, what was started and not waited for, and the ops on them.
//
// Why this exists: fleets drive pinned memory under a whole runtime, stages drive it straight over a scripted device.
// What an op does to a buffer, and what must be true of its bytes afterwards, is the same.
//
// Ops, each with its arguments (`slot` names a buffer, 0 to 63):
//   alloc slot bytes [own]         async_alloc, waited for       try_alloc slot bytes
//   alloc_start slot bytes [own]   without waiting
//   await slot [ns]                waits for what was started; after ns gives up the notification and waits for that
//   cancel slot                    gives up the notification of what was started in the slot
//   fill slot seed                 writes a pattern              free slot     drops the buffer
//   check slot                     the pattern must be as it was filled (W-3)
//   sleep ns
// An op that the core refuses ends with ok=0 and the error's code; that is an outcome, not a violation.
//
// Ownership   On the stack of its host's fiber; what was started is shared with its handler, in the host's heap.
// Units       Bytes, virtual nanoseconds.
// Threading   Ops on fibers of the host. Different fibers use different slots, but for `cancel`.
// Failure     See above.
#pragma once

#include <sim/scenarios/workload.hpp>

#include <holdfast/pinned/pool.hpp>

#include <boost/asio/cancellation_signal.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::sim {

/// Something that was started. Shared with its handler.
struct flight {
  boost::asio::cancellation_signal signal;
  latch ended;
  std::optional<holdfast::result<holdfast::pinned::get_answer>> fetched;
  std::optional<holdfast::result<holdfast::pinned::buffer>> allocated;
  std::uint64_t bytes = 0;    // asked for
  std::uint64_t pattern = 0;  // that a GET must bring
  bool stale = false;         // from a life that had ended when it began: it must not succeed
  bool given_back = false;    // its source may be somebody else's by now: nobody knows its bytes
};

/// The outcome of an op that the core refused.
step_result refused_step(const holdfast::error& why);
/// On a fiber of `machine`, and no scheduling point of the program: until `ns` have passed.
void sleep_for(world& w, std::int64_t ns);

class pool_user {
 public:
  static constexpr std::int64_t slots_max = 64;
  struct slot {
    holdfast::pinned::buffer held;
    std::optional<std::uint64_t> pattern;
    std::shared_ptr<flight> started;
  };

  pool_user(world& w, host& machine) : the_world(w), machine(machine) {}

  /// Error sentence if the arguments of `step` are out of range.
  static std::optional<std::string> inspect(const op& step);

  step_result alloc(const op& step);
  step_result alloc_start(const op& step);
  step_result await(const op& step);
  step_result cancel(const op& step);
  step_result check(const op& step);
  step_result fill(const op& step);
  step_result free(const op& step);
  step_result sleep(const op& step);
  step_result try_alloc(const op& step);

  /// Starts a GET into the slot's buffer; on ok the bytes must be those of `pattern` (W-9), and it must not be ok if
  /// the owner's life had ended (TP-I10).
  step_result begin_get(slot& into, const holdfast::peer_id& peer, const holdfast::remote_reference& from,
                        std::uint64_t pattern, bool stale = false);
  slot& slot_of(const op& step) { return slots[step.number("slot")]; }

  world& the_world;
  host& machine;
  holdfast::pinned::memory* pool = nullptr;  // set while there is one
  slot slots[slots_max];

 private:
  step_result keep(const op& step, holdfast::pinned::buffer got, std::uint64_t asked);
  step_result accept(const op& step, slot& into, flight& what);
};

}  // namespace holdfast::sim
