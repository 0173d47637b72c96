// What other threads ask of connections: make one, end one.
//
// Why this exists: what was asked for is answered by the progress thread; if that thread never comes back from the
// library, whoever waits is told all the same, so callers are also kept in a book of their own.
//
// Ownership   A request is the asker's until it was pushed to the submission queue, then the connections' until its
//             answer, in which it destroys itself.
// Threading   Answers run on the progress thread with no lock held.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/base/peer.hpp>
#include <holdfast/platform/clock.hpp>
#include <holdfast/transport/submission_queue.hpp>

#include <cstdint>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::transport {

class connection_set;

/// Somebody who waits for an answer that the progress thread gives.
class pending_call {
 public:
  pending_call* next_told = nullptr;  // link of whoever collects calls

 protected:
  pending_call() noexcept = default;
  ~pending_call() = default;

 private:
  friend class call_book;
  /// Under the book's lock. False: it is on its way out.
  virtual bool take_share() noexcept = 0;
  /// Answers, unless it was answered before, and lets go of the share.
  virtual void tell(const error& why) noexcept = 0;
  pending_call* previous_pending_ = nullptr;
  pending_call* next_pending_ = nullptr;
};

class call_book {
 public:
  /// False: everybody was told already, and nobody will answer this one.
  bool add(pending_call& one) noexcept;
  void remove(pending_call& one) noexcept;
  /// Tells everybody who waits; later ones are not taken.
  void tell_all(const error& why) noexcept;

 private:
  platform::mutex mutex_{lock_ranks::transport_calls};
  pending_call* first_ HOLDFAST_GUARDED_BY(mutex_) = nullptr;
  bool told_ HOLDFAST_GUARDED_BY(mutex_) = false;
};

class connect_request : public command {
 public:
  std::string address;
  /// Zeros: whoever answers.
  peer_id expected;
  /// The start-up probe's own pair.
  bool loopback = false;
  connection_set* set = nullptr;
  connect_request* next_waiter = nullptr;

  virtual void connected(const result<peer_id>& answer) noexcept = 0;

  void execute() noexcept final;
  void refuse() noexcept final;

 protected:
  ~connect_request() = default;
};

/// How a close ended.
enum class close_kind : std::uint8_t {
  clean,   // flushed, and the peer said goodbye
  forced,  // ended by force; `held` operations had not come back when the answer was given
  parked,  // the library did not end the close in time; the endpoint ends with the worker
};

struct close_answer {
  close_kind kind = close_kind::clean;
  std::uint64_t held = 0;
};

class close_request : public command {
 public:
  peer_id peer;
  platform::time_point deadline = platform::never;
  connection_set* set = nullptr;
  close_request* next_waiter = nullptr;

  virtual void closed(const result<close_answer>& answer) noexcept = 0;

  void execute() noexcept final;
  void refuse() noexcept final;

 protected:
  ~close_request() = default;
};

/// Who says so, of a peer that is declared dead. In the order of the event `peer_declared_dead`.
enum class death_evidence : std::uint8_t { process_exited, host_down, job_ended, told_by_operator };

struct revoke_answer {
  /// Connections that were ended.
  std::uint64_t connections = 0;
  /// Our own operations towards the peer that had not come back.
  std::uint64_t held = 0;
  /// Reads of the peer that were not received yet will never be served. False: it could reach us through shared memory,
  /// or a close was under way; then only the end of the worker is a fence.
  bool reads_stop = true;
};

/// Ends what is left of a peer: because it is dead, or because it may read no more.
class peer_order : public command {
 public:
  enum class what : std::uint8_t { declare_dead, revoke };
  peer_id peer;
  what asked = what::revoke;
  death_evidence evidence = death_evidence::told_by_operator;
  connection_set* set = nullptr;

  virtual void carried_out(const result<revoke_answer>& answer) noexcept = 0;

  void execute() noexcept final;
  void refuse() noexcept final;

 protected:
  ~peer_order() = default;
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
