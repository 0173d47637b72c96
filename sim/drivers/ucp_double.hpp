// The objects behind the simulated UCX: what its opaque handles point to.
//
// Why this exists: core is written against libucp. The double behaves like UCX 1.13 over tcp and over the memory of
// one machine as far as core may depend on it, and differs from run to run where it may not (statuses of a lost peer,
// inline or posted, order of messages, numbers of keys).
//
// Lanes: an endpoint with error mode PEER goes over tcp. One without goes through shared memory if both processes are
// on one machine (sim/hardware/fabric.hpp) and TLS allows it, else over tcp. Through shared memory a GET is served by
// the owner's progress as over tcp; a peer's death or stop is never reported, a forced close is refused, and a flushed
// close towards a peer that does not progress does not end.
//
// With the setting `rdma` endpoints between two hosts that have it carry GETs one-sided (ucp_rdma.cpp).
//
// Devices: a host has "lo" for 127.x.y.z and "eth0" for its other address, both of tcp; with the setting `rdma` also
// "mlx5_0:1", which is used whatever TLS says. NET_DEVICES chooses among them (ucp_devices.cpp).
//
// Keys: bytes of a key are a small number that is used again after the registration is gone, and that begins anew in
// the process's next life; or they are the same for all registrations of a life. An unpacked key remembers which
// registration it was unpacked for.
//
// Faults it makes: the points ucp.* of sim/faults/fault_plan.cpp, besides those of NIC, memory and fabric below it.
// What it does not do, because no code of core may depend on it: tags, streams, PUT and atomics, the library's own
// registrations of zero-copy buffers, and the lock of a context (two registration threads of one context do not wait
// for each other here).
//
// Ownership   Objects live until their host crashes or the world ends, also after they were closed: a handle that is
//             used too late is recognized and reported instead of read from freed memory. Requests alone are reused.
// Units       Bytes, virtual nanoseconds.
// Threading   One OS thread. Functions are called on fibers; each is a scheduling point and runs in kernel scope;
//             callbacks run in core scope, from ucp_worker_progress.
// Failure     What the library's contract forbids is a violation "driver misuse: ...".
#pragma once

#include <holdfast/backends/ucx/ucp_table.hpp>
#include <sim/drivers/ucp_settings.hpp>
#include <sim/faults/fault_plan.hpp>
#include <sim/hardware/fabric.hpp>
#include <sim/hardware/host_memory.hpp>
#include <sim/hardware/nic.hpp>
#include <sim/kernel/fiber.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sim::ucp_double {

/// Bytes of an active message's header, at most.
inline constexpr std::size_t max_am_header = 8000;

/// Index of a function in the table, as it stands in `driver_call` events.
enum class function : std::uint16_t {
#define HOLDFAST_UCP(name) name,
  HOLDFAST_UCP_FUNCTIONS(HOLDFAST_UCP) HOLDFAST_UCP_OPTIONAL_FUNCTIONS(HOLDFAST_UCP)
#undef HOLDFAST_UCP
};
std::string_view name_of(function f) noexcept;

enum class object_kind : std::uint8_t {
  config,
  context,
  worker,
  listener,
  connection_request,
  endpoint,
  key,
  memory_handle,
  packed_key,
  request,
  address,
};
std::string_view name_of(object_kind kind) noexcept;

class library;
struct worker;
struct endpoint;
struct key;
struct request;
struct listener;

struct object {
  static constexpr std::uint32_t made_here = 0x75637001;
  const std::uint32_t magic = made_here;  // a handle that never was one does not have it
  object_kind kind;
  bool counted = true;       // to the leak check; false: the library made it on its own account
  bool gone = false;         // closed, destroyed, freed: the handle may not be used any more
  std::uint64_t number = 0;  // of its kind, from 1 for each host
  library& lib;

  object(library& l, object_kind k) : kind(k), lib(l) {}
  object(const object&) = delete;
  object& operator=(const object&) = delete;
  virtual ~object() = default;
};

/// Which transports a context may use, from the setting TLS.
struct transports {
  bool tcp = true;
  bool shared = true;
};

/// Which devices of the network a context may use, from the setting NET_DEVICES.
struct devices {
  bool loopback = true;
  bool ethernet = true;
  bool card = true;  // of a context: and the host has it
};

struct config final : object {
  explicit config(library& l) : object(l, object_kind::config) {}
  transports allowed;
  devices chosen;
};

struct context final : object {
  explicit context(library& l) : object(l, object_kind::context) {}
  std::uint64_t features = 0;
  bool shared = false;  // mt_workers_shared
  transports allowed;
  devices used;
  unsigned workers = 0;  // not destroyed
};

struct memory_handle final : object {
  memory_handle(library& l, context& c) : object(l, object_kind::memory_handle), owner(c) {}
  context& owner;
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  std::uint64_t registration = 0;
  std::uint32_t key_number = 0;  // what a packed key says; free again when this is gone
};

/// The buffer of ucp_worker_get_address.
struct worker_address final : object {
  explicit worker_address(library& l) : object(l, object_kind::address) {}
  std::vector<std::byte> bytes;
};

/// The buffer of ucp_rkey_pack.
struct packed_key final : object {
  explicit packed_key(library& l) : object(l, object_kind::packed_key) {}
  std::vector<std::byte> bytes;
};

enum class message_kind : std::uint8_t {
  connect,   // a client's request at a listener, or at a worker whose address it has
  accepted,  // the server created its endpoint
  rejected,
  active,       // an active message
  active_done,  // the receiver dropped a rendezvous descriptor; ends the sender's request
  get,          // read this, please
  piece,        // bytes of a GET
  fin,          // flushed close
  fin_answer,
  broke,        // the stream broke
  end_request,  // local: a request ends with `status` now
};

/// One entry of a worker's inbox, and what travels on streams.
struct message final : packet {
  explicit message(message_kind k) : kind(k) {}
  message_kind kind;
  bool wants_reply = false;
  bool rendezvous = false;
  std::uint16_t am_id = 0;
  ucs_status_t status = UCS_OK;
  std::uint64_t request = 0;  // of the requester
  std::uint64_t address = 0;
  std::uint64_t bytes_total = 0;
  std::uint64_t offset = 0;
  std::vector<std::byte> header;
  std::vector<std::byte> body;
  // Set on arrival.
  endpoint* to = nullptr;
  listener* at = nullptr;
  std::shared_ptr<stream> where;
  // Who sent a connect or accepted: for lanes that need no progress of the owner.
  host* sender = nullptr;
  std::uint32_t sender_life = 0;
  bool sender_card = false;
  // Of a connect to a worker's address.
  bool peer_mode = false;
  bool shared = false;
  std::uint32_t wanted_life = 0;
};

struct active_handler {
  ucp_am_recv_callback_t callback = nullptr;
  void* argument = nullptr;
};

/// A GET that this side serves, piece by piece, from its progress.
struct served_read {
  endpoint* to;
  std::uint64_t request;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t done;
  std::uint64_t piece_bytes;
};

/// Endpoints without error mode between two workers. The n-th that the program makes here is what the peer's n-th is
/// answered through, and the peer's reads name it by its address: the library looks at that memory before anything else.
struct pairing {
  std::uint32_t made = 0;
  std::uint32_t accepted = 0;
  std::set<std::uint32_t> closed;  // of those that were made
};

struct worker final : object, descriptor, acceptor {
  worker(library& l, context& c) : object(l, object_kind::worker), owner(c) {}
  context& owner;
  fiber* thread = nullptr;  // null: any thread may use it
  int efd = -1;
  bool armed = false;
  bool signalled = false;
  /// A descriptor that says so with nothing behind it (point ucp.arm.busy, stuck), this often. By looks and not by
  /// time: who looks again at once would otherwise stop time.
  mutable std::uint64_t stuck_looks = 0;
  bool progressing = false;
  std::uint64_t progressed = 0;  // times
  std::deque<std::unique_ptr<message>> inbox;
  std::unique_ptr<message> current;  // kept here, not on a stack that may be abandoned
  std::vector<served_read> serving;
  std::vector<request*> sends;  // active messages whose bytes were not read yet, in order
  std::map<std::uint64_t, request*> outstanding;
  std::map<std::uint16_t, active_handler> handlers;
  std::vector<endpoint*> endpoints;                                  // not destroyed
  std::map<std::pair<std::uint16_t, std::uint32_t>, pairing> pairs;  // by host and life of the peer
  std::vector<key*> keys;                                            // not destroyed
  std::vector<listener*> listeners;                                  // not destroyed
  std::uint64_t undecided = 0;  // connection requests handed out, neither accepted nor rejected
  std::uint64_t unfreed = 0;    // ended requests that the program did not free

  std::uint16_t address_port = 0;  // where who has the address connects; 0: nobody asked for it

  bool readable() const noexcept override;
  void connected(std::shared_ptr<stream> where, std::unique_ptr<packet> first) override;
  /// Puts a message behind the others and wakes whoever sleeps on the armed descriptor.
  void receive(std::unique_ptr<message> m);
  void notify();
  bool has_work() const noexcept;
};

struct listener final : object, acceptor {
  listener(library& l, worker& w) : object(l, object_kind::listener), owner(w) {}
  worker& owner;
  std::uint32_t address = 0;
  std::uint16_t port = 0;
  ucp_listener_conn_handler_t handler{};
  void connected(std::shared_ptr<stream> where, std::unique_ptr<packet> first) override;
};

struct connection_request final : object {
  connection_request(library& l, listener& from) : object(l, object_kind::connection_request), owner(from) {}
  listener& owner;
  std::shared_ptr<stream> where;
  host* client = nullptr;
  std::uint32_t client_life = 0;
  bool client_card = false;
};

struct endpoint final : object, stream_end {
  endpoint(library& l, worker& w) : object(l, object_kind::endpoint), owner(w) {}
  worker& owner;
  side mine = side::client;
  std::shared_ptr<stream> where;
  bool peer_mode = false;               // error handling mode PEER
  bool shared = false;                  // through the memory of the machine
  bool queue_pair_dead = false;         // one-sided transfers of this endpoint move no byte any more
  std::int64_t last_completion_ns = 0;  // of its queue pair: completions keep their order
  std::uint32_t pair = 0;               // its number there; 0: not one of them, or both ends are this process
  std::uint64_t sent_in_vain = 0;       // segments of replies since the other end of its stream was closed
  bool passive = false;                 // made for who connected to the worker's address; nobody was given its handle
  ucp_err_handler_cb_t on_error = nullptr;
  void* on_error_argument = nullptr;
  bool connected = false;
  bool forced = false;
  std::uint64_t forced_at = 0;  // how often its worker had progressed then
  ucs_status_t failed = UCS_OK;
  request* closing = nullptr;  // of a flushed close
  bool fin_sent = false;
  std::vector<std::unique_ptr<message>> queue;  // until it is connected
  unsigned operations = 0;                      // outstanding
  host* peer = nullptr;
  std::uint32_t peer_life = 0;
  bool peer_card = false;  // its context uses a card with queue pairs

  void arrived(std::unique_ptr<packet> what) override;
  void broken(break_reason why) override;
};

struct key final : object {
  key(library& l, endpoint& e) : object(l, object_kind::key), owner(e) {}
  endpoint& owner;
  std::uint32_t number_packed = 0;  // what its bytes say
  std::uint64_t registration = 0;   // which had these bytes when they were unpacked, at the owner; 0: none, or unknown
  unsigned uses = 0;
};

enum class request_kind : std::uint8_t { get, send, close };

struct request final : object {
  request(library& l, request_kind w) : object(l, object_kind::request), what(w) {}
  request_kind what;
  worker* through = nullptr;
  endpoint* on = nullptr;
  key* with = nullptr;
  ucs_status_t status = UCS_INPROGRESS;
  ucp_send_nbx_callback_t callback = nullptr;
  void* user_data = nullptr;
  bool ending = false;    // an end_request message is on its way
  bool released = false;  // freed before its end: goes on without a callback
  // GET
  std::byte* destination = nullptr;
  std::size_t bytes = 0;
  std::size_t landed = 0;
  bool stale = false;  // of a registration that is gone: brings nothing of worth
  dma_admission admission;
  // Active message: read when it leaves, not when it is posted.
  std::uint16_t am_id = 0;
  const void* header = nullptr;
  std::size_t header_bytes = 0;
  const void* body = nullptr;
  std::size_t body_bytes = 0;
  bool wants_reply = false;
  bool rendezvous = false;
};

/// libucp in one life of one host. The host owns it and drops it when it crashes.
class library {
 public:
  explicit library(host& h);
  library(const library&) = delete;
  library& operator=(const library&) = delete;

  host& owner;
  const std::uint32_t life;
  const ucp_settings& settings;
  /// Expires with the library: world events that refer to its objects hold it weakly.
  const std::shared_ptr<const char> alive = std::make_shared<const char>();

  world& the_world() const noexcept { return owner.owner(); }
  /// Everything that may differ from run to run is drawn here.
  random_stream& chance() noexcept { return chance_; }
  /// For the numbers of keys alone, so that they disturb nothing else.
  random_stream& key_chance() noexcept { return key_chance_; }
  fault_plan& faults() noexcept { return faults_; }

  template <class T, class... Arguments>
  T& make(Arguments&&... arguments) {
    auto made = std::make_unique<T>(*this, std::forward<Arguments>(arguments)...);
    T& result = *made;
    result.number = ++numbers_[static_cast<unsigned>(result.kind)];
    count(result.kind, 1);
    objects_.push_back(std::move(made));
    return result;
  }
  request& make_request(request_kind what, worker& through);
  /// The handle may not be used any more.
  void retire(object& o);
  /// Handles that are open, to the kernel's leak check.
  void count(object_kind kind, int change);
  /// From here on this life's handles are nobody's leak: a call that never returns keeps them.
  void forgive_leaks();
  packed_key* find_packed(const void* bytes);
  std::uint32_t take_key_number();
  /// The registration that a packed key with this number names now, or 0.
  std::uint64_t registration_named(std::uint32_t key_number) const noexcept;
  std::vector<worker*> workers;            // not destroyed
  std::vector<packed_key*> packed;         // not released
  std::vector<memory_handle*> mapped;      // not unmapped
  std::vector<worker_address*> addresses;  // not released

  void misuse(std::string_view what, std::string sentence);

 private:
  // The world's, which outlives its hosts' libraries.
  random_stream& chance_;
  random_stream& key_chance_;
  fault_plan& faults_;
  std::uint32_t highest_key_ = 0;
  bool keys_drawn_ = false;
  bool keys_empty_ = false;  // every key of this life is number 0
  std::vector<std::unique_ptr<object>> objects_;
  std::deque<request*> free_requests_;
  std::uint64_t numbers_[11] = {};
  int open_[11] = {};
  bool forgiven_ = false;
};

library& library_of(host& h);

namespace detail {
/// The scheduling point before anything of the call happens, outside kernel scope.
struct scheduling_point {
  scheduling_point() = default;  // none
  explicit scheduling_point(function f);
};
}  // namespace detail

/// One call of a function of the library: its scheduling point, kernel scope, the checks that hold for all of them.
class call {
 public:
  /// `subject`: the handle that the function is about, for the event.
  explicit call(function f, const void* subject = nullptr);
  /// Without a scheduling point. For a function that answers the same whenever it runs, and to which the caller hands
  /// what may not be left behind with an abandoned stack.
  struct at_once {};
  call(function f, const void* subject, at_once);
  call(const call&) = delete;
  call& operator=(const call&) = delete;

  library& lib() const noexcept { return *library_; }
  host& owner() const noexcept { return library_->owner; }
  world& the_world() const noexcept { return library_->the_world(); }
  std::string_view name() const noexcept { return ucp_double::name_of(function_); }

  /// The object behind a handle; null after reporting that it is none, or not any more.
  template <class T>
  T* find(const void* handle, object_kind kind) {
    return static_cast<T*>(find_object(handle, kind));
  }
  /// As `find`, and the caller must be the worker's thread. Ends the worker's armed state unless `keeps_armed`.
  worker* find_worker(const void* handle, bool keeps_armed = false);
  endpoint* find_endpoint(const void* handle);
  bool on_thread_of(worker& w, bool keeps_armed = false);
  /// Status that a fault at `point` makes this call answer, or OK.
  ucs_status_t fault_status(std::string_view point, ucs_status_t otherwise);

 private:
  void enter(const void* subject);
  object* find_object(const void* handle, object_kind kind);
  detail::scheduling_point point_;  // first: outside kernel scope
  kernel_scope scope_;
  function function_;
  library* library_;
};

/// Lets virtual time pass on the calling fiber. Outside kernel scope; the caller keeps nothing on its stack that has a
/// destructor.
void spend(std::int64_t duration_ns);
[[noreturn]] void never_return();

template <class H>
H handle_of(object& o) noexcept {
  return reinterpret_cast<H>(static_cast<object*>(&o));
}

/// Sends on the endpoint's stream, or keeps it until the endpoint is connected.
void post(endpoint& e, std::unique_ptr<message> m);
/// Ends a request: status, event, callback if it was asked for. Core scope inside.
void finish(request& r, ucs_status_t status);
/// A request ends with `status` in a later progress call, after up to `spread_ns`.
void finish_later(request& r, ucs_status_t status, std::int64_t spread_ns);
/// The endpoint does not work any more; runs the error handler where it must.
void fail_endpoint(endpoint& e, ucs_status_t status);
/// The devices that a value of NET_DEVICES names. A name that is not there is passed over, as the library does with a
/// warning.
devices parse_devices(std::string_view text) noexcept;
/// Whether a connection that names `address` goes over a device of the context.
bool reaches(const context& from, std::uint32_t address) noexcept;
/// A GET over this endpoint needs nobody's progress.
bool is_one_sided(const endpoint& e);
/// The endpoint's queue pair reads at the peer and writes here. `m` asks for it.
void read_one_sided(endpoint& e, const message& m);
/// The device of the library's host failed: what is outstanding ends with errors, later.
void flush_failed_device(library& lib);
/// Somebody connected to the worker's address.
void answer_address(worker& w, message& m);
/// The bytes of `key` name another registration at the owner now than when it was unpacked. Says so by event.
bool is_stale(const key& k);
/// Takes the endpoint out of its worker and lets go of its stream.
void detach(endpoint& e, bool quietly);
/// A flushed close goes on when nothing is outstanding.
void continue_close(endpoint& e);
/// One progress call, for a worker that is known to be in order.
unsigned progress(worker& w);
/// Handles one message of the inbox.
void handle(worker& w, message& m);
/// Reads and sends active messages that wait. Answers how many.
unsigned send_waiting(worker& w);
/// Serves a piece of each read. Answers how many.
unsigned serve_pieces(worker& w);

// The functions themselves, with the library's own names.
#define HOLDFAST_UCP(name) extern std::remove_pointer_t<decltype(&::name)> name;
HOLDFAST_UCP_FUNCTIONS(HOLDFAST_UCP)
HOLDFAST_UCP_OPTIONAL_FUNCTIONS(HOLDFAST_UCP)
#undef HOLDFAST_UCP

}  // namespace holdfast::sim::ucp_double
