// Who is connected, for every thread to ask; and which incarnations of a name are over.
//
// Why this exists: connections belong to the progress thread, but a caller of any thread has to learn at once that
// its peer is not there, or is another life (spec/transport 7.5). Every change of a connection's state goes through
// here, so that the books, the event and what callers see change in one section.
//
// Ownership   Entries are numbers and names; nothing here keeps a connection alive.
// Units       Counts.
// Threading   Changes on the progress thread, questions from any.
// Failure     A full history forgets the names that were heard of longest ago.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/base/peer.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::transport {

/// In the order of the event `connection_state`.
enum class connection_state : std::uint8_t { connecting, greeting, ready, draining, lost, closing, closed, failed };
inline constexpr std::size_t connection_states = 8;

struct connection;

enum class peer_presence : std::uint8_t {
  absent,        // no ready connection to that name
  ready,         // this very life is connected
  another_life,  // the name is connected, in another incarnation
};

class connection_directory {
 public:
  connection_directory(event_log& log, std::size_t connections_max);

  /// A new record in its first state.
  void add(connection& which, connection_state state) noexcept;
  /// Moves a record to its next state. Ready ones can be found, others cannot.
  void move(connection& which, connection_state state) noexcept;
  /// `older` leaves service and `newer` enters it, so that never two and never none of them is found.
  void supersede(connection& older, connection& newer) noexcept;
  /// The record is about to be destroyed, in state closed.
  void forget(connection& which) noexcept;

  /// For the progress thread: the ready connection of exactly this peer, or null.
  connection* find(const peer_id& peer) const noexcept;
  /// For any thread.
  peer_presence presence(const peer_id& peer) const noexcept;
  std::array<std::uint64_t, connection_states> counts() const noexcept;

 private:
  struct entry {
    peer_id peer;
    connection* which;
  };
  void put(connection& which, connection_state state) noexcept HOLDFAST_REQUIRES(mutex_);
  std::size_t position(const peer_id& peer) const noexcept HOLDFAST_REQUIRES(mutex_);

  event_log& log_;
  mutable platform::mutex mutex_{lock_ranks::transport_directory};
  // Sorted by peer; reserved when made, so that a change allocates nothing.
  std::vector<entry> ready_ HOLDFAST_GUARDED_BY(mutex_);
  std::array<std::uint64_t, connection_states> counts_ HOLDFAST_GUARDED_BY(mutex_){};
};

/// What is known of the lives of each name. Progress thread only.
class incarnation_history {
 public:
  /// Of a name's older lives this many are remembered.
  static constexpr std::size_t remembered_max = 64;
  explicit incarnation_history(std::size_t names_max) noexcept : names_max_(names_max) {}

  enum class verdict : std::uint8_t { first, same, newer, old };
  /// What a hello of this life means. Changes nothing.
  verdict judge(const peer_id& peer) const noexcept;
  /// The current life of that name; 0 if it was never heard of.
  std::uint64_t current(std::uint64_t worker_id) const noexcept;
  /// Makes this life the current one; the one before is old from here on. False: no memory, nothing changed.
  bool accept(const peer_id& peer) noexcept;
  /// That life is over, whether it was heard of or not, and is old from here on. False: no memory, nothing changed.
  bool bury(const peer_id& peer) noexcept;

 private:
  struct name {
    std::uint64_t worker_id = 0;
    std::uint64_t current = 0;
    std::vector<std::uint64_t> old;  // oldest first
  };
  std::vector<name>::iterator seek(std::uint64_t worker_id) noexcept;
  const name* find(std::uint64_t worker_id) const noexcept;

  const std::size_t names_max_;
  std::vector<name> names_;  // heard of longest ago first
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
