// Connections to other processes, and GETs from their memory, over one communication library.
//
// Why this exists: the library may be called by one thread only, answers in four ways or not at all, and knows
// nothing of restarts. Behind this interface one progress thread and one registration thread drive it, every
// submitted operation ends exactly once, and no operation reaches another life of a process than the one it was
// meant for (spec/transport).
//
// Ownership   Refers to host and event log, which outlive it. Destroying a transport that was not torn down calls the
//             library no more and leaks, on purpose and with one event, what a device may still reach.
// Units       Bytes, absolute deadlines on the host's clock.
// Threading   Everything but `create` and the destructor from any thread. Answers come on the executor of the handler;
//             answers of jobs and transfers on the transport's threads, see there.
// Failure     By value. Cancelling an asynchronous call abandons its notification; what was started goes on.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/peer.hpp>
#include <holdfast/base/witness.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/telemetry/event_log.hpp>
#include <holdfast/transport/capabilities.hpp>
#include <holdfast/transport/directory.hpp>
#include <holdfast/transport/loss_watch.hpp>
#include <holdfast/transport/operation.hpp>
#include <holdfast/transport/registration.hpp>
#include <holdfast/transport/requests.hpp>
#include <holdfast/transport/settings.hpp>
#include <holdfast/transport/teardown.hpp>
#include <holdfast/transport/transfer.hpp>
#include <holdfast/transport/wire.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::transport {

struct engine;
enum class transport_state : std::uint8_t;

/// Makes the library's context. Called once, on the thread that creates the transport.
using wire_factory = std::move_only_function<result<std::unique_ptr<wire>>()>;

struct transport_snapshot {
  transport_state state{};
  operation_counts operations;
  /// By `connection_state`.
  std::array<std::uint64_t, connection_states> connections{};
  std::uint64_t endpoints_parked = 0;
  std::uint64_t keys = 0;
  std::uint64_t registrations = 0;
};

class transport {
 public:
  /// Opens context, worker and listener, starts both threads, and finds out by trying whether GETs work. Blocks, at
  /// most for `startup_timeout`. After an error no thread, descriptor, registration or endpoint is left, unless the
  /// library itself did not return: then the error is timed_out, its threads still run, and the host must live
  /// for ever, as must the log (`kept_for_ever`). A probe that fails is no error: see `get_works`.
  /// `lost` is told of every peer that is lost, see loss_watch.hpp.
  static result<std::unique_ptr<transport>> create(platform::host& host, event_log& log, wire_factory factory,
                                                   const settings& values, loss_handler lost = {});
  ~transport();
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;

  /// Who we are for peers.
  const peer_id& self() const noexcept;
  std::uint64_t incarnation() const noexcept;
  std::uint64_t epoch() const noexcept;
  /// The address in force: "127.0.0.1:41234".
  std::string_view listen_address() const noexcept;
  const wire_versions& versions() const noexcept;
  bool get_works() const noexcept;
  /// Why not, if not.
  const error& get_absent_because() const noexcept;
  bool get_uses_memh() const noexcept;
  /// What the start-up found.
  const capabilities& found() const noexcept;
  bool destroy_is_fence() const noexcept;

  /// Whether new work is taken.
  bool is_running() const noexcept;
  /// Whether this life of that process is connected and takes transfers.
  bool is_ready(const peer_id& peer) const noexcept;
  peer_presence presence(const peer_id& peer) const noexcept;
  transport_snapshot snapshot() const noexcept;

  /// Connects to a listener, "127.0.0.1:41234"; `expected` zeros take whoever answers. Signature void(result<peer_id>).
  /// Equal targets share one attempt; a target that is connected answers at once. Errors: unreachable, timed_out,
  /// stale_key (the name is right, the life is another), version_mismatch, protocol, limit_exceeded, shutting_down.
  template <class Token>
  auto async_connect(std::string address, peer_id expected, Token&& token) {
    return boost::asio::async_initiate<Token, void(result<peer_id>)>(
        [this](auto handler, std::string to, peer_id whom) {
          start_connect(connect_handler(std::move(handler)), std::move(to), whom);
        },
        token, std::move(address), expected);
  }

  /// Ends the connection to a peer: transfers that are posted finish until the deadline, then it is forced. Signature
  /// void(result<close_answer>). Return of a close is no fence. Errors: unreachable (no such connection).
  template <class Token>
  auto async_close(peer_id peer, platform::time_point deadline, Token&& token) {
    return boost::asio::async_initiate<Token, void(result<close_answer>)>(
        [this](auto handler, peer_id whom, platform::time_point until) {
          start_close(close_handler(std::move(handler)), whom, until);
        },
        token, peer, deadline);
  }

  /// Somebody who knows says that this life of a peer is over: as if its connection had reported it, and that life is
  /// refused for ever. Signature void(result<revoke_answer>). Errors: out_of_memory, shutting_down, timed_out (hung).
  template <class Token>
  auto async_declare_dead(peer_id peer, death_evidence evidence, Token&& token) {
    return boost::asio::async_initiate<Token, void(result<revoke_answer>)>(
        [this](auto handler, peer_id whom, death_evidence why) {
          start_order(order_handler(std::move(handler)), whom, peer_order::what::declare_dead, why);
        },
        token, peer, evidence);
  }

  /// Ends every connection to a peer by force, so that reads which it was entitled to are served no more; it may connect
  /// again. Look at `reads_stop`: through shared memory nothing stops them but the end of the worker. Signature
  /// void(result<revoke_answer>). A peer that is not connected is no error. Errors: shutting_down, timed_out (hung).
  template <class Token>
  auto async_revoke(peer_id peer, Token&& token) {
    return boost::asio::async_initiate<Token, void(result<revoke_answer>)>(
        [this](auto handler, peer_id whom) {
          start_order(order_handler(std::move(handler)), whom, peer_order::what::revoke,
                      death_evidence::told_by_operator);
        },
        token, peer);
  }

  /// Ends everything. Signature void(result<teardown_result>); returns by its deadline, whatever the library does. The
  /// first call starts it, later ones get the same report without a witness.
  template <class Token>
  auto async_teardown(platform::time_point deadline, Token&& token) {
    return boost::asio::async_initiate<Token, void(result<teardown_result>)>(
        [this](auto handler, platform::time_point until) {
          start_teardown(teardown_handler(std::move(handler)), until);
        },
        token, deadline);
  }

  /// `told` is called on the executor if the library fails for good and the transport ends by itself, or has: its
  /// connections and operations end, its registrations stay until the owner tears it down. Once; a later `told`
  /// replaces an earlier one. Errors: out_of_memory.
  result<void> when_failed(std::move_only_function<void()> told) noexcept;

  /// Hands a GET over. An error means that nothing was touched and the transfer is the caller's again:
  /// not_configured (GETs do not work here), unreachable, stale_key, busy, shutting_down, out_of_range.
  result<void> submit_get(transfer& what) noexcept;

  /// Hands memory work to the registration thread. False: the transport ended; the job is the caller's again.
  bool submit_map(map_job& job) noexcept;
  bool submit_unmap(unmap_job& job) noexcept;
  bool submit_errand(errand& job) noexcept;

 private:
  using connect_handler = boost::asio::any_completion_handler<void(result<peer_id>)>;
  using close_handler = boost::asio::any_completion_handler<void(result<close_answer>)>;
  using teardown_handler = boost::asio::any_completion_handler<void(result<teardown_result>)>;

  using order_handler = boost::asio::any_completion_handler<void(result<revoke_answer>)>;

  explicit transport(std::unique_ptr<engine> made) noexcept;
  void start_order(order_handler handler, peer_id peer, peer_order::what asked, death_evidence evidence);
  void start_connect(connect_handler handler, std::string address, peer_id expected);
  void start_close(close_handler handler, peer_id peer, platform::time_point deadline);
  void start_teardown(teardown_handler handler, platform::time_point deadline);

  std::unique_ptr<engine> engine_;
  error get_absent_because_;
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
