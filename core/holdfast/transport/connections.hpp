// Every connection of one transport: how it comes to be, who is at the other end, and how it ends.
//
// Why this exists: an endpoint is a thing of the library; a connection knows which run of which process it reaches,
// takes no operation that could act on another, notices death, and ends what death leaves behind (spec/transport
// 7.4 to 7.10). It is driven step by step from the progress loop.
//
// Ownership   Owns its records until they are closed, or until the worker is destroyed.
// Units       Bytes, counts; absolute deadlines.
// Threading   The progress thread, all of it, but for the directory's questions. Functions of `wire_sink` and the
//             exits of operations run inside callbacks of the library: they record, and `step` acts.
// Failure     By value to whoever asked; what nobody asked for (a peer's death, a refused hello) by event.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/atomic.hpp>
#include <holdfast/transport/connection.hpp>
#include <holdfast/transport/requests.hpp>
#include <holdfast/transport/settings.hpp>
#include <holdfast/transport/transfer.hpp>
#include <holdfast/transport/wire.hpp>

#include <cstdint>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::transport {

class connection_set final : public wire_sink {
 public:
  connection_set(event_log& log, const platform::clock& clock, const settings& values, const peer_id& self,
                 const platform::machine_identity& machine, wire& library, operation_table& table,
                 const platform::executor& executor, std::shared_ptr<const loss_handler> watch);
  ~connection_set();

  connection_directory& directory() noexcept { return directory_; }
  const connection_directory& directory() const noexcept { return directory_; }
  /// Whether a hello with our own incarnation is taken for the other half of the start-up probe.
  void allow_loopback(bool allowed) noexcept { loopback_allowed_.store(allowed, std::memory_order_release); }

  /// Whether hellos offer a data endpoint, and data endpoints are opened where one is offered.
  void share_memory(bool shared) noexcept { shares_memory_.store(shared, std::memory_order_release); }

  // Steps of the loop. `now` is read once an iteration.
  /// Acts on what callbacks recorded, and on deadlines. True if anything was done.
  bool step(platform::time_point now) noexcept;
  /// Whether callbacks recorded something that `step` has not acted on.
  bool has_work() const noexcept;
  platform::time_point nearest_deadline() const noexcept { return nearest_; }

  // Commands.
  void start_connect(connect_request& request) noexcept;
  void start_close(close_request& request) noexcept;
  void start_order(peer_order& order) noexcept;
  void submit(transfer& what) noexcept;
  /// Before submission, on the caller's thread.
  void prepare(transfer& what, wire_region destination, bool control_only = false) noexcept {
    what.connections_ = this;
    what.control_only_ = control_only;
    what.region_handle_ = destination;
  }
  /// A transfer left the table; may run inside a callback.
  void transfer_exited(transfer& what, operation_exit exit, int status) noexcept;

  // Teardown (spec/transport 7.13).
  /// Attempts fail, requests are rejected from here on; the rest drains until `until`.
  void close_all(platform::time_point now, platform::time_point until) noexcept;
  /// Forces what still drains.
  void force_all(platform::time_point now) noexcept;
  /// Records whose endpoint is not known to be gone.
  std::uint64_t living() const noexcept;
  /// Whether operations are outstanding on an endpoint that was closed by force: progress ends them.
  bool owes_callbacks() const noexcept;
  /// Requests that came too late for a step.
  void reject_all() noexcept;
  /// After the worker's destruction and the sweep: the library's handles are gone, the records follow.
  void worker_gone() noexcept;

  std::uint64_t keys() const noexcept { return keys_.load(std::memory_order_relaxed); }
  std::uint64_t parked() const noexcept { return parked_.load(std::memory_order_relaxed); }
  std::uint64_t forced() const noexcept { return forced_.load(std::memory_order_relaxed); }

  // wire_sink: inside callbacks.
  void connection_requested(wire_connection_request request) noexcept override;
  void endpoint_failed(void* cookie, int status) noexcept override;
  void message_received(void* cookie, std::uint16_t kind, std::span<const std::byte> bytes,
                        bool as_descriptor) noexcept override;

 private:
  friend class hello_operation;
  friend class close_operation;
  friend class transfer;

  connection* make(bool initiated) noexcept;
  void destroy(connection& c) noexcept;
  void mark_dirty(connection& c) noexcept;
  void set_deadline(connection& c, platform::time_point at) noexcept;

  void accept_requested(platform::time_point now) noexcept;
  void attend(connection& c, platform::time_point now) noexcept;
  void expire(connection& c, platform::time_point now) noexcept;
  void watch_silence(connection& c) noexcept;
  void suspect(connection& c, platform::time_point now) noexcept;
  void note_shared(const peer_id& peer) noexcept;
  bool shared_with(const peer_id& peer) const noexcept;
  void opened(connection& c) noexcept;
  void send_hello(connection& c) noexcept;
  void greet(connection& c, platform::time_point now) noexcept;
  void greet_arrived(platform::time_point now) noexcept;
  void refuse_hello(connection& c, hello_refusal why, const error& told) noexcept;
  void make_ready(connection& c, platform::time_point now) noexcept;
  connection* other_life_of(const peer_id& peer, const connection& except) noexcept;
  bool canonical(const connection& a, const connection& b) const noexcept;

  void lose(connection& c, loss_reason reason) noexcept;
  void fail_attempt(connection& c, const error& why) noexcept;
  void begin_draining(connection& c, platform::time_point now, platform::time_point until) noexcept;
  void drain_further(connection& c, platform::time_point now) noexcept;
  void close_endpoint(connection& c, bool force) noexcept;
  void finish_if_done(connection& c) noexcept;
  void answer_connect(connection& c, const result<peer_id>& answer) noexcept;
  void answer_close(connection& c, const result<close_answer>& answer) noexcept;
  void endpoint_moves(connection& c, endpoint_state to) noexcept;
  void data_moves(data_endpoint& data, endpoint_state to) noexcept;
  void open_data(connection& c) noexcept;
  data_endpoint* parked_for(const peer_id& peer) noexcept;
  void retire_data(connection& c) noexcept;
  void end_record(connection& c) noexcept;

  void refuse_lost(transfer& what) noexcept;
  void hand_over(transfer& what, connection& c, data_endpoint* data) noexcept;
  void wait_for_turn(transfer& what, connection& c) noexcept;
  void give_turns(connection& c) noexcept;
  void refuse_waiting(connection& c) noexcept;

  result<cached_key*> key_for(connection& c, const transfer& what, wire_endpoint via) noexcept;
  void destroy_key(connection& c, cached_key& key) noexcept;
  void condemn_keys(connection& c) noexcept;
  void destroy_condemned(connection& c) noexcept;
  error peer_error(const connection& c, int status) const noexcept;

  event_log& log_;
  const platform::clock& clock_;
  const settings& settings_;
  const peer_id self_;
  const platform::machine_identity machine_;
  wire& wire_;
  operation_table& table_;
  platform::executor executor_;
  const std::shared_ptr<const loss_handler> watch_;  // null if nobody watches
  connection_directory directory_;
  incarnation_history history_;
  // To whom memory was offered while the worker lives: their reads through it cannot be stopped. Sorted.
  std::vector<peer_id> shared_with_;
  bool shared_with_anybody_ = false;  // there was no memory to remember more
  bool closing_ = false;
  bool worker_is_gone_ = false;

  connection* first_ = nullptr;  // in order of their numbers
  connection* last_ = nullptr;
  std::uint64_t count_ = 0;
  std::uint64_t ended_ = 0;  // of them, those that only wait for the worker's destruction
  std::uint64_t last_number_ = 0;
  std::uint64_t last_endpoint_ = 0;
  data_endpoint* data_first_ = nullptr;  // they live as long as the worker
  std::size_t data_endpoints_ = 0;
  std::uint64_t last_key_ = 0;
  connection* dirty_first_ = nullptr;
  connection* dirty_last_ = nullptr;
  // Requests of peers, in order of arrival; those over the bound only wait to be rejected.
  std::vector<wire_connection_request> requested_;
  std::vector<wire_connection_request> over_bound_;
  platform::time_point nearest_ = platform::never;

  platform::atomic<bool> loopback_allowed_{false};
  platform::atomic<bool> shares_memory_{false};
  platform::atomic<std::uint64_t> keys_{0};
  platform::atomic<std::uint64_t> parked_{0};
  platform::atomic<std::uint64_t> forced_{0};
};

}  // namespace holdfast::inline HOLDFAST_ABI::transport
