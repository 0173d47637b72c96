// What the checks over UCX share: our side, its peers, and GETs that are waited for to a bound.
//
// Ownership   Our side is older than the GETs; peers are processes of their own.
// Units       Bytes, nanoseconds.
// Threading   One thread.
// Failure     By sentence.
#pragma once

#include <holdfast/platform/abi.hpp>

#include "smoke/awaited.hpp"
#include "smoke/node.hpp"
#include "smoke/parts.hpp"
#include "smoke/processes.hpp"

#include <holdfast/transport/transport.hpp>

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::smoke {

inline constexpr const char* ucx_part = "ucx";
inline constexpr std::string_view shutdown_row = "shutdown";

struct ucx_stage {
  surroundings& with;
  std::unique_ptr<node> own;
  std::vector<std::unique_ptr<peer_process>> peers;
  std::uint64_t last_seed = 0;
  /// GETs of ours whose fate nobody knows before the worker's end.
  std::uint64_t held = 0;

  /// Opens our side. Errors as runtime::create.
  result<void> open(bool shared_memory = true);
  /// A peer that serves `bytes`, connected to us.
  std::expected<std::unique_ptr<peer_process>, std::string> start_peer(std::uint64_t bytes);

  void ok(std::string_view name, std::string figure) { with.found.ok(ucx_part, name, std::move(figure)); }
  void failed(std::string_view name, std::string reason) { with.found.failed(ucx_part, name, std::move(reason)); }
};

/// One GET of ours. It owns the buffer until it is over; what it never gave back is the core's.
class pending_get {
 public:
  /// `offset` and `bytes` within what the peer serves. The destination holds the complement before.
  pending_get(node& own, const peer_process& from, std::uint64_t offset, std::uint64_t bytes, pinned::buffer into);

  bool wait(steady::duration bound) { return told_.wait(bound); }
  bool wait_until(steady::time_point bound) { return told_.wait_until(bound); }
  bool came() { return told_.came(); }
  void cancel() { told_.cancel(); }
  std::int64_t took_ns() { return (told_.when() - began_).count(); }
  steady::time_point ended_at() { return told_.when(); }
  steady::time_point began() const { return began_; }
  /// After it came: the error, or none. Cancelled or indeterminate included.
  std::optional<error> failure();
  /// After it came without failure. Empty: every byte is right.
  std::string wrong_bytes();
  /// The buffer, if it came back.
  pinned::buffer take_buffer();

 private:
  std::uint64_t seed_, offset_, bytes_;
  steady::time_point began_;
  awaited<result<pinned::get_answer>> told_;
};

/// Waits, looking again and again, until `holds`; false if it does not within `bound`.
template <class Condition>
bool eventually(Condition holds, steady::duration bound) {
  const steady::time_point until = steady::now() + bound;
  while (!holds()) {
    if (steady::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

/// GETs of rising sizes, then many at once.
void check_gets(ucx_stage& stage);
/// A GET that is cancelled while it is in flight; then its room is used again.
void check_cancelled(ucx_stage& stage);
/// A peer is killed in mid-transfer; the row is called `name`.
void check_killed(ucx_stage& stage, std::string_view name);
/// A peer stands still; then our side shuts down. Ends `stage.own`.
void check_stopped(ucx_stage& stage);
/// The shutdown of a side on which nothing is left but what `held` counts, and its books. Ends `stage.own`.
void check_end(ucx_stage& stage, std::string_view name, std::string_view recorded);

/// Of the last operations that `own` saw: how many, and a sentence if one did not end exactly once.
struct operations_seen {
  std::uint64_t ended = 0;
  std::string wrong;
};
operations_seen look_at_operations(const node& own);

}  // namespace holdfast::smoke
