#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/ucx/address.hpp>
#include <holdfast/backends/ucx/devices.hpp>
#include <holdfast/backends/ucx/fork.hpp>
#include <holdfast/backends/ucx/load.hpp>
#include <holdfast/backends/ucx/wire_ucx.hpp>
#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/platform/listening_port.hpp>
#include <holdfast/telemetry/emit.hpp>
#include <holdfast/transport/hello.hpp>
#include <holdfast/transport/settings.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::ucx {

namespace {

using transport::arm_answer;
using transport::mapped_memory;
using transport::post_exit;
using transport::posted;
using transport::wire_connection_request;
using transport::wire_endpoint;
using transport::wire_key;
using transport::wire_operation;
using transport::wire_region;
using transport::wire_sink;
using transport::wire_versions;

// The first version whose GET reads the caller's memory handle.
constexpr unsigned memh_minor = 14;

class wire_ucx;
struct endpoint_record;

// A GET that is fetched in several, one after the other.
struct long_read {
  wire_ucx* of = nullptr;
  endpoint_record* on = nullptr;  // null once its close was called
  wire_operation* operation = nullptr;
  std::byte* to = nullptr;
  std::size_t left = 0;   // bytes that were not asked for yet
  std::size_t asked = 0;  // bytes of the one that is outstanding
  std::uint64_t from = 0;
  ucp_rkey_h key = nullptr;
  ucp_mem_h memory = nullptr;
  bool due = false;  // the one before ended well, and the next was not asked for yet
  long_read* previous = nullptr;
  long_read* next = nullptr;
};

// One endpoint: UCX's handle and what we give back to the transport about it.
struct endpoint_record {
  wire_ucx* of = nullptr;
  ucp_ep_h handle = nullptr;  // null once its close was called
  void* cookie = nullptr;
  bool data = false;  // of the data worker
  wire_operation* closing = nullptr;
  void* close_request = nullptr;
  long_read* reading = nullptr;  // GETs take turns: there is one at most
  endpoint_record* previous = nullptr;
  endpoint_record* next = nullptr;
};

// One registration: the library's handle, and the one of the data context, whose keys only its own endpoints understand.
// There, over shared memory, nothing is registered; the handle is what a key is made of.
struct region_record {
  ucp_mem_h main = nullptr;
  ucp_mem_h data = nullptr;
};

// A key for peers: the length of the first in two bytes, little-endian, the key for endpoints over the network, the one
// for data endpoints.
constexpr std::size_t key_prefix_bytes = 2;

class wire_ucx final : public transport::wire {
 public:
  /// `data_context`: for lanes through shared memory; null: there are none.
  wire_ucx(const ucp_table& table, ucp_context_h context, ucp_context_h data_context, transport::wire_facts facts,
           std::size_t get_bytes_max) noexcept
      : ucp_(table),
        context_(context),
        data_context_(data_context),
        facts_(std::move(facts)),
        get_bytes_max_(get_bytes_max) {
    ucp_.ucp_get_version(&versions_.major, &versions_.minor, &versions_.release);
    versions_.text = ucp_.ucp_get_version_string();
  }
  ~wire_ucx() override {
    if (context_ != nullptr && !worker_opened_) close_context();
  }

  const wire_versions& versions() const noexcept override { return versions_; }
  bool get_uses_memh() const noexcept override { return versions_.minor >= memh_minor || versions_.major > 1; }
  std::string_view words(int status) const noexcept override {
    if (ucp_.ucs_status_string == nullptr) return "status of UCX";
    return ucp_.ucs_status_string(static_cast<ucs_status_t>(status));
  }

  result<void> open_worker(wire_sink& sink) override;
  void destroy_worker() noexcept override;
  const transport::wire_facts& facts() const noexcept override { return facts_; }
  std::span<const std::byte> worker_address() const noexcept override { return address_; }
  int event_descriptor() const noexcept override { return descriptor_; }
  int data_event_descriptor() const noexcept override { return data_descriptor_; }
  unsigned progress() noexcept override {
    unsigned done = ucp_.ucp_worker_progress(worker_);
    if (any_due_) done += go_on_reading();
    return data_worker_ == nullptr ? done : done + ucp_.ucp_worker_progress(data_worker_);
  }
  arm_answer arm() noexcept override {
    const arm_answer first = arm(worker_);
    return first != arm_answer::armed || data_descriptor_ < 0 ? first : arm(data_worker_);
  }

  result<std::string> listen(std::string_view address) override;
  void let_nobody_in() noexcept override {
    if (listener_ != nullptr) platform::let_nobody_in(listening_);
  }
  std::size_t shut_out_newcomers() noexcept override {
    return listener_ != nullptr ? platform::shut_out_newcomers(listening_) : 0;
  }
  void destroy_listener() noexcept override;
  void reject(wire_connection_request request) noexcept override {
    ucp_.ucp_listener_reject(listener_, reinterpret_cast<ucp_conn_request_h>(request));
  }
  result<wire_endpoint> accept(wire_connection_request request, void* cookie) override;
  result<wire_endpoint> connect(std::string_view address, void* cookie) override;
  result<wire_endpoint> open_data(std::span<const std::byte> address, void* cookie) override;
  posted close(wire_endpoint endpoint, bool force, wire_operation& operation) noexcept override;
  posted send(wire_endpoint endpoint, std::uint16_t kind, std::span<const std::byte> bytes,
              wire_operation& operation) noexcept override;

  result<wire_key> unpack_key(wire_endpoint endpoint, const packed_key& key) override;
  void destroy_key(wire_key key) noexcept override { ucp_.ucp_rkey_destroy(reinterpret_cast<ucp_rkey_h>(key)); }
  posted get(wire_endpoint endpoint, std::byte* destination, std::size_t bytes, std::uint64_t remote_address,
             wire_key key, wire_region destination_region, wire_operation& operation) noexcept override;

  result<mapped_memory> map(std::byte* address, std::size_t bytes) override;
  bool unmap(wire_region region) noexcept override {
    auto* const record = reinterpret_cast<region_record*>(region);
    if (record->data != nullptr) static_cast<void>(ucp_.ucp_mem_unmap(data_context_, record->data));
    const ucp_mem_h main = record->main;
    delete record;
    return ucp_.ucp_mem_unmap(context_, main) == UCS_OK;
  }
  bool distinct(wire_region one, wire_region other) const noexcept override {
    return reinterpret_cast<region_record*>(one)->main != reinterpret_cast<region_record*>(other)->main;
  }
  void close_context() noexcept override {
    if (data_context_ != nullptr) ucp_.ucp_cleanup(std::exchange(data_context_, nullptr));
    ucp_.ucp_cleanup(std::exchange(context_, nullptr));
  }

 private:
  std::unexpected<error> failed(const char* operation, ucs_status_t status, std::string_view about = {}) const;
  result<wire_endpoint> create(ucp_ep_params_t& params, void* cookie, const char* operation, std::string_view about,
                               bool data = false);
  arm_answer arm(ucp_worker_h worker) noexcept {
    const ucs_status_t status = ucp_.ucp_worker_arm(worker);
    return status == UCS_OK ? arm_answer::armed : status == UCS_ERR_BUSY ? arm_answer::busy : arm_answer::failed;
  }
  void open_data_worker() noexcept;
  result<void> make_key(region_record& of, const ucp_mem_map_params_t& params, packed_key& key);
  result<void> append_key(ucp_context_h context, ucp_mem_h handle, std::array<std::byte, packed_key::bytes_max>& bytes,
                          std::size_t& used);
  void keep_address() noexcept;
  void forget(endpoint_record& endpoint) noexcept;
  void* cookie_of(ucp_ep_h handle) const noexcept;
  static posted decide(ucs_status_ptr_t answer) noexcept;
  posted ask(endpoint_record& on, std::byte* to, std::size_t bytes, std::uint64_t from, ucp_rkey_h key,
             ucp_mem_h memory, ucp_send_nbx_callback_t done, void* user_data) noexcept;
  posted read_on(long_read& read) noexcept;
  unsigned go_on_reading() noexcept;
  void end_read(long_read& read) noexcept;

  // Callbacks of UCX, on the progress thread. They record; see transport/wire.hpp.
  static void operation_done(void* request, ucs_status_t status, void* user_data);
  static void part_done(void* request, ucs_status_t status, void* user_data);
  static void close_done(void* request, ucs_status_t status, void* user_data);
  static void endpoint_error(void* arg, ucp_ep_h handle, ucs_status_t status);
  static void connection_asked(ucp_conn_request_h request, void* arg);
  static ucs_status_t message_arrived(void* arg, const void* header, std::size_t header_length, void* data,
                                      std::size_t length, const ucp_am_recv_param_t* param);

  const ucp_table ucp_;
  wire_versions versions_;
  ucp_context_h context_;
  ucp_context_h data_context_;
  transport::wire_facts facts_;
  std::vector<std::byte> address_;
  ucp_worker_h worker_ = nullptr;
  // Lanes through shared memory have a context and a worker of their own, without tcp: beside it UCX 1.13 would send
  // the first message of such an endpoint over tcp, and aborts the process if the peer dies before it went out.
  ucp_worker_h data_worker_ = nullptr;
  int data_descriptor_ = -1;
  ucp_listener_h listener_ = nullptr;
  sockaddr_storage listening_{};
  wire_sink* sink_ = nullptr;
  int descriptor_ = -1;
  bool worker_opened_ = false;
  endpoint_record* endpoints_ = nullptr;
  const std::size_t get_bytes_max_;
  long_read* reads_ = nullptr;
  bool any_due_ = false;
};

std::unexpected<error> wire_ucx::failed(const char* operation, ucs_status_t status, std::string_view about) const {
  char text[sizeof(error::words)];
  const std::string_view said = words(status);
  if (about.empty())
    std::snprintf(text, sizeof(text), "%.*s", static_cast<int>(said.size()), said.data());
  else
    std::snprintf(text, sizeof(text), "%.*s: %.*s", static_cast<int>(about.size()), about.data(),
                  static_cast<int>(said.size()), said.data());
  const error_code code = status == UCS_ERR_NO_MEMORY ? error_code::out_of_memory : error_code::backend;
  return fail_with_words(code, operation, text, 0, static_cast<std::uint64_t>(static_cast<std::int64_t>(status)));
}

// ---- worker ---------------------------------------------------------------------------------------------------------

result<void> wire_ucx::open_worker(wire_sink& sink) {
  sink_ = &sink;
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  ucs_status_t status = ucp_.ucp_worker_create(context_, &params, &worker_);
  if (status != UCS_OK) return failed("ucx.worker", status);
  worker_opened_ = true;

  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  status = ucp_.ucp_worker_query(worker_, &attributes);
  // Messages carry a header of 40 bytes; what cannot hold 64 is no transport for them.
  facts_.am_header_bytes_max = status == UCS_OK ? attributes.max_am_header : 0;
  const bool narrow = status == UCS_OK && attributes.max_am_header < 64;
  if (status == UCS_OK && !narrow) status = ucp_.ucp_worker_get_efd(worker_, &descriptor_);
  if (status == UCS_OK && !narrow) {
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                         UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = transport::hello_kind;
    handler.flags = UCP_AM_FLAG_WHOLE_MSG;
    handler.cb = &wire_ucx::message_arrived;
    handler.arg = this;
    status = ucp_.ucp_worker_set_am_recv_handler(worker_, &handler);
  }
  if (status == UCS_OK && !narrow) {
    if (data_context_ != nullptr) open_data_worker();
    return {};
  }
  destroy_worker();
  if (narrow)
    return fail_with_words(error_code::absent, "ucx.worker", "transport.transports: no message header of 64 bytes");
  return failed("ucx.worker", status);
}

void wire_ucx::open_data_worker() noexcept {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  if (ucp_.ucp_worker_create(data_context_, &params, &data_worker_) != UCS_OK) {
    data_worker_ = nullptr;
    return;
  }
  if (ucp_.ucp_worker_get_efd(data_worker_, &data_descriptor_) == UCS_OK)
    keep_address();
  else
    data_descriptor_ = -1;
}

void wire_ucx::keep_address() noexcept {
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  if (ucp_.ucp_worker_get_address(data_worker_, &address, &bytes) != UCS_OK) return;
  try {
    const auto* const first = reinterpret_cast<const std::byte*>(address);
    if (!platform::heap_fault("ucx.address")) address_.assign(first, first + bytes);
  } catch (const std::bad_alloc&) {
    address_.clear();
  }
  ucp_.ucp_worker_release_address(data_worker_, address);
  facts_.worker_address_bytes = address_.size();
}

void wire_ucx::destroy_worker() noexcept {
  // UCX 1.13 aborts if a worker is destroyed while a close that did not end still has an owner for its request. Giving
  // the request back also takes its callback away: the operation is left to the sweep.
  for (endpoint_record* record = endpoints_; record != nullptr; record = record->next)
    if (record->close_request != nullptr) ucp_.ucp_request_free(std::exchange(record->close_request, nullptr));
  // The one over memory last: it calls nobody back, so nothing is heard after the first of the two returned.
  ucp_.ucp_worker_destroy(std::exchange(worker_, nullptr));
  if (data_worker_ != nullptr) ucp_.ucp_worker_destroy(std::exchange(data_worker_, nullptr));
  // Their operations are the sweep's.
  while (reads_ != nullptr) delete std::exchange(reads_, reads_->next);
  while (endpoints_ != nullptr) delete std::exchange(endpoints_, endpoints_->next);
}

// ---- listener and endpoints -----------------------------------------------------------------------------------------

result<std::string> wire_ucx::listen(std::string_view address) {
  const auto where = parse_address(address);
  char setting[96];
  std::snprintf(setting, sizeof(setting), "transport.listen_address %.*s", static_cast<int>(address.size()),
                address.data());
  if (!where) return fail_with_words(error_code::invalid_argument, "ucx.listen", setting);
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&where->storage);
  params.sockaddr.addrlen = where->bytes;
  params.conn_handler.cb = &wire_ucx::connection_asked;
  params.conn_handler.arg = this;
  ucs_status_t status = ucp_.ucp_listener_create(worker_, &params, &listener_);
  if (status != UCS_OK) return failed("ucx.listen", status, setting);
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  status = ucp_.ucp_listener_query(listener_, &attributes);
  if (status != UCS_OK) {
    destroy_listener();
    return failed("ucx.listen", status, setting);
  }
  listening_ = attributes.sockaddr;
  return format_address(listening_);
}

void wire_ucx::destroy_listener() noexcept {
  if (listener_ != nullptr) ucp_.ucp_listener_destroy(std::exchange(listener_, nullptr));
}

result<wire_endpoint> wire_ucx::accept(wire_connection_request request, void* cookie) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  params.conn_request = reinterpret_cast<ucp_conn_request_h>(request);
  auto made = create(params, cookie, "ucx.accept", {});
  // UCX consumes the request whether or not it makes an endpoint of it; a record that could not be made does not.
  if (!made && made.error().code == error_code::out_of_memory && made.error().numbers[0] == 0) reject(request);
  return made;
}

result<wire_endpoint> wire_ucx::connect(std::string_view address, void* cookie) {
  const auto where = parse_address(address);
  if (!where) return fail_with_words(error_code::invalid_argument, "ucx.connect", address);
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&where->storage);
  params.sockaddr.addrlen = where->bytes;
  return create(params, cookie, "ucx.connect", address);
}

result<wire_endpoint> wire_ucx::open_data(std::span<const std::byte> address, void* cookie) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  if (address_.empty()) return fail(error_code::not_configured, "ucx.open_data");
  return create(params, cookie, "ucx.open_data", {}, true);
}

result<wire_endpoint> wire_ucx::create(ucp_ep_params_t& params, void* cookie, const char* operation,
                                       std::string_view about, bool data) {
  auto* const made = platform::heap_fault("ucx.endpoint") ? nullptr : new (std::nothrow) endpoint_record;
  if (made == nullptr) return fail(error_code::out_of_memory, operation);
  made->of = this;
  made->cookie = cookie;
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.err_mode = data ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &wire_ucx::endpoint_error;
  params.err_handler.arg = made;
  const ucs_status_t status = ucp_.ucp_ep_create(data ? data_worker_ : worker_, &params, &made->handle);
  if (status != UCS_OK) {
    delete made;
    return failed(operation, status, about);
  }
  made->data = data;
  made->next = endpoints_;
  if (endpoints_ != nullptr) endpoints_->previous = made;
  endpoints_ = made;
  return reinterpret_cast<wire_endpoint>(made);
}

void wire_ucx::forget(endpoint_record& endpoint) noexcept {
  (endpoint.previous != nullptr ? endpoint.previous->next : endpoints_) = endpoint.next;
  if (endpoint.next != nullptr) endpoint.next->previous = endpoint.previous;
  delete &endpoint;
}

posted wire_ucx::decide(ucs_status_ptr_t answer) noexcept {
  if (answer == nullptr) return {post_exit::inline_done, 0};
  if (UCS_PTR_IS_ERR(answer)) return {post_exit::refused, UCS_PTR_RAW_STATUS(answer)};
  return {post_exit::posted, 0};
}

posted wire_ucx::close(wire_endpoint endpoint, bool force, wire_operation& operation) noexcept {
  auto& record = *reinterpret_cast<endpoint_record*>(endpoint);
  const ucp_ep_h handle = std::exchange(record.handle, nullptr);
  record.closing = &operation;
  if (record.reading != nullptr) std::exchange(record.reading, nullptr)->on = nullptr;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = force ? static_cast<std::uint32_t>(UCP_EP_CLOSE_FLAG_FORCE) : 0;
  params.cb.send = &wire_ucx::close_done;
  params.user_data = &record;
  const ucs_status_ptr_t request = ucp_.ucp_ep_close_nbx(handle, &params);
  const posted answer = decide(request);
  // Error or not, the library has let go of the endpoint, unless a callback is still to come.
  if (answer.exit == post_exit::posted)
    record.close_request = request;
  else
    forget(record);
  return answer;
}

posted wire_ucx::send(wire_endpoint endpoint, std::uint16_t kind, std::span<const std::byte> bytes,
                      wire_operation& operation) noexcept {
  operation.posted_by = this;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  // The receiver learns the endpoint only from a message that asks for a reply.
  params.flags = UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY;
  params.cb.send = &wire_ucx::operation_done;
  params.user_data = &operation;
  return decide(ucp_.ucp_am_send_nbx(reinterpret_cast<endpoint_record*>(endpoint)->handle, kind, nullptr, 0,
                                     bytes.data(), bytes.size(), &params));
}

// ---- keys and transfers ---------------------------------------------------------------------------------------------

result<wire_key> wire_ucx::unpack_key(wire_endpoint endpoint, const packed_key& key) {
  const std::span<const std::byte> bytes = key.bytes();
  if (bytes.size() < key_prefix_bytes) return fail(error_code::bad_key, "ucx.key");
  const std::size_t first = std::to_integer<std::size_t>(bytes[0]) | std::to_integer<std::size_t>(bytes[1]) << 8;
  if (first > bytes.size() - key_prefix_bytes) return fail(error_code::bad_key, "ucx.key");
  const auto& on = *reinterpret_cast<endpoint_record*>(endpoint);
  const auto meant = on.data ? bytes.subspan(key_prefix_bytes + first) : bytes.subspan(key_prefix_bytes, first);
  if (meant.empty()) return fail(error_code::bad_key, "ucx.key");
  ucp_rkey_h made = nullptr;
  const ucs_status_t status = ucp_.ucp_ep_rkey_unpack(on.handle, meant.data(), &made);
  if (status != UCS_OK) return failed("ucx.key", status);
  return reinterpret_cast<wire_key>(made);
}

posted wire_ucx::get(wire_endpoint endpoint, std::byte* destination, std::size_t bytes, std::uint64_t remote_address,
                     wire_key key, wire_region destination_region, wire_operation& operation) noexcept {
  auto& on = *reinterpret_cast<endpoint_record*>(endpoint);
  const auto handle = reinterpret_cast<ucp_rkey_h>(key);
  // The handle is of the other context.
  const ucp_mem_h memory = destination_region != nullptr && get_uses_memh() && !on.data
                               ? reinterpret_cast<region_record*>(destination_region)->main
                               : nullptr;
  operation.posted_by = this;
  if (on.data || !facts_.gets_take_turns || bytes <= get_bytes_max_)
    return ask(on, destination, bytes, remote_address, handle, memory, &wire_ucx::operation_done, &operation);
  auto* const read = platform::heap_fault("ucx.read") ? nullptr : new (std::nothrow) long_read;
  if (read == nullptr) return {post_exit::refused, UCS_ERR_NO_MEMORY};
  *read = {this, &on, &operation, destination, bytes, 0, remote_address, handle, memory, false, nullptr, reads_};
  if (reads_ != nullptr) reads_->previous = read;
  reads_ = on.reading = read;
  const posted answer = read_on(*read);
  if (answer.exit != post_exit::posted) end_read(*read);
  return answer;
}

posted wire_ucx::ask(endpoint_record& on, std::byte* to, std::size_t bytes, std::uint64_t from, ucp_rkey_h key,
                     ucp_mem_h memory, ucp_send_nbx_callback_t done, void* user_data) noexcept {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = done;
  params.user_data = user_data;
  if (memory != nullptr) {
    params.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
    params.memh = memory;
  }
  return decide(ucp_.ucp_get_nbx(on.handle, to, bytes, from, key, &params));
}

// Asks for the next part, and for those after it as long as they end at once.
posted wire_ucx::read_on(long_read& read) noexcept {
  for (;;) {
    read.asked = std::min(read.left, get_bytes_max_);
    const posted answer =
        ask(*read.on, read.to, read.asked, read.from, read.key, read.memory, &wire_ucx::part_done, &read);
    if (answer.exit != post_exit::inline_done) return answer;
    read.to += read.asked;
    read.from += read.asked;
    read.left -= read.asked;
    if (read.left == 0) return answer;
  }
}

// Inside a callback the library may not be called: those whose part ended well wait until it returned.
unsigned wire_ucx::go_on_reading() noexcept {
  unsigned done = 0;
  any_due_ = false;
  for (;;) {
    // From the beginning each time: what the library calls back inside a call may end another.
    long_read* one = reads_;
    while (one != nullptr && !one->due) one = one->next;
    if (one == nullptr) return done;
    one->due = false;
    ++done;
    const posted answer = one->on != nullptr ? read_on(*one) : posted{post_exit::refused, UCS_ERR_CANCELED};
    if (answer.exit == post_exit::posted) continue;
    wire_operation& operation = *one->operation;
    end_read(*one);
    operation.called_back(answer.status);
  }
}

void wire_ucx::end_read(long_read& read) noexcept {
  if (read.on != nullptr) read.on->reading = nullptr;
  (read.previous != nullptr ? read.previous->next : reads_) = read.next;
  if (read.next != nullptr) read.next->previous = read.previous;
  delete &read;
}

// ---- memory ---------------------------------------------------------------------------------------------------------

result<mapped_memory> wire_ucx::map(std::byte* address, std::size_t bytes) {
  ucp_mem_map_params_t params{};
  // Never UCP_MEM_MAP_NONBLOCK: it would allow paging on demand, and the pages would not be pinned.
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = address;
  params.length = bytes;
  auto* const record = platform::heap_fault("ucx.region") ? nullptr : new (std::nothrow) region_record;
  if (record == nullptr) return fail(error_code::out_of_memory, "ucx.map", 0, sizeof(region_record));
  ucs_status_t status = ucp_.ucp_mem_map(context_, &params, &record->main);
  if (status != UCS_OK) {
    delete record;
    return failed("ucx.map", status);
  }

  mapped_memory made;
  made.region = reinterpret_cast<wire_region>(record);
  result<void> outcome;
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
  status = ucp_.ucp_mem_query(record->main, &attributes);
  if (status != UCS_OK) {
    outcome = failed("ucx.map", status);
  } else {
    made.address = static_cast<std::byte*>(attributes.address);
    made.bytes = attributes.length;
    if (made.address > address || made.address + made.bytes < address + bytes)
      outcome = fail_with_words(error_code::backend, "ucx.map", "the library registered less than it was asked for");
  }
  if (outcome) outcome = make_key(*record, params, made.key);
  if (outcome) return made;
  static_cast<void>(unmap(made.region));
  return std::unexpected(outcome.error());
}

result<void> wire_ucx::make_key(region_record& of, const ucp_mem_map_params_t& params, packed_key& key) {
  std::array<std::byte, packed_key::bytes_max> bytes;
  std::size_t used = key_prefix_bytes;
  if (auto packed = append_key(context_, of.main, bytes, used); !packed) return packed;
  const std::size_t first = used - key_prefix_bytes;
  bytes[0] = static_cast<std::byte>(first & 0xff);
  bytes[1] = static_cast<std::byte>(first >> 8 & 0xff);
  if (!address_.empty()) {
    const ucs_status_t status = ucp_.ucp_mem_map(data_context_, &params, &of.data);
    if (status != UCS_OK) {
      of.data = nullptr;
      return failed("ucx.map", status);
    }
    if (auto packed = append_key(data_context_, of.data, bytes, used); !packed) return packed;
  }
  static_cast<void>(key.assign(std::span<const std::byte>(bytes).first(used)));
  return {};
}

result<void> wire_ucx::append_key(ucp_context_h context, ucp_mem_h handle,
                                  std::array<std::byte, packed_key::bytes_max>& bytes, std::size_t& used) {
  void* key = nullptr;
  std::size_t key_bytes = 0;
  const ucs_status_t status = ucp_.ucp_rkey_pack(context, handle, &key, &key_bytes);
  if (status != UCS_OK) return failed("ucx.map", status);
  const bool fits = key_bytes <= bytes.size() - used;
  if (fits) {
    std::memcpy(bytes.data() + used, key, key_bytes);
    used += key_bytes;
  }
  ucp_.ucp_rkey_buffer_release(key);
  if (fits) return {};
  return fail(error_code::limit_exceeded, "ucx.map", 0, used + key_bytes, packed_key::bytes_max);
}

// ---- callbacks ------------------------------------------------------------------------------------------------------

void wire_ucx::operation_done(void* request, ucs_status_t status, void* user_data) {
  auto& operation = *static_cast<wire_operation*>(user_data);
  static_cast<wire_ucx*>(operation.posted_by)->ucp_.ucp_request_free(request);
  operation.called_back(status);
}

void wire_ucx::part_done(void* request, ucs_status_t status, void* user_data) {
  auto& read = *static_cast<long_read*>(user_data);
  wire_ucx& self = *read.of;
  self.ucp_.ucp_request_free(request);
  read.to += read.asked;
  read.from += read.asked;
  read.left -= read.asked;
  if (status == UCS_OK && read.left != 0) {
    read.due = self.any_due_ = true;
    return;
  }
  wire_operation& operation = *read.operation;
  self.end_read(read);
  operation.called_back(status);
}

void wire_ucx::close_done(void* request, ucs_status_t status, void* user_data) {
  auto& record = *static_cast<endpoint_record*>(user_data);
  wire_ucx& self = *record.of;
  wire_operation& operation = *record.closing;
  self.ucp_.ucp_request_free(request);
  self.forget(record);
  operation.called_back(status);
}

void wire_ucx::endpoint_error(void* arg, ucp_ep_h, ucs_status_t status) {
  auto& record = *static_cast<endpoint_record*>(arg);
  if (record.handle != nullptr) record.of->sink_->endpoint_failed(record.cookie, status);
}

void wire_ucx::connection_asked(ucp_conn_request_h request, void* arg) {
  static_cast<wire_ucx*>(arg)->sink_->connection_requested(reinterpret_cast<wire_connection_request>(request));
}

void* wire_ucx::cookie_of(ucp_ep_h handle) const noexcept {
  for (const endpoint_record* record = endpoints_; record != nullptr; record = record->next)
    if (record->handle == handle) return record->cookie;
  return nullptr;
}

ucs_status_t wire_ucx::message_arrived(void* arg, const void*, std::size_t header_length, void* data,
                                       std::size_t length, const ucp_am_recv_param_t* param) {
  auto& self = *static_cast<wire_ucx*>(arg);
  const bool as_descriptor = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  void* const cookie = (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0 && param->reply_ep != nullptr
                           ? self.cookie_of(param->reply_ep)
                           : nullptr;
  // A descriptor has no bytes yet, and a hello has no header.
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(data), as_descriptor ? 0 : length);
  self.sink_->message_received(cookie, transport::hello_kind, bytes, as_descriptor || header_length != 0);
  return as_descriptor ? UCS_ERR_REJECTED : UCS_OK;
}

bool only_known(std::string_view transports) noexcept {
  while (!transports.empty()) {
    const std::size_t comma = transports.find(',');
    const std::string_view one = transports.substr(0, comma);
    if (one != "tcp" && one != "self" && one != "posix" && one != "sysv" && one != "cma" && one != "shm" && one != "sm")
      return false;
    transports = comma == std::string_view::npos ? std::string_view{} : transports.substr(comma + 1);
  }
  return true;
}

// Whatever the list leaves to the library or to the environment may end at tcp.
bool may_use_tcp(std::string_view transports) noexcept {
  for (bool more = true; more;) {
    const std::size_t comma = transports.find(',');
    const std::string_view one = transports.substr(0, comma);
    if (one == "tcp" || one == "auto" || one == "all" || one.starts_with('^')) return true;
    more = comma != std::string_view::npos;
    if (more) transports.remove_prefix(comma + 1);
  }
  return false;
}

// Of the data context.
constexpr const char* memory_transports = "posix";

// For lanes through shared memory; null: this machine or this library has none.
ucp_context_h open_data_context(const ucp_table& table, event_log& log, const std::string& devices) noexcept {
  if (table.ucp_worker_get_address == nullptr || table.ucp_worker_release_address == nullptr) return nullptr;
  ucp_config_t* config = nullptr;
  if (table.ucp_config_read(nullptr, nullptr, &config) != UCS_OK) return nullptr;
  ucs_status_t status = table.ucp_config_modify(config, "RCACHE_ENABLE", "n");
  if (status == UCS_OK) status = table.ucp_config_modify(config, "TLS", memory_transports);
  // Of the network it uses none; but it looks whether they are there, and complains on standard error.
  if (status == UCS_OK) status = choose_devices(table, log, config, devices);
  ucp_context_h made = nullptr;
  if (status == UCS_OK) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
    params.mt_workers_shared = 1;
    if (table.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &made) != UCS_OK) made = nullptr;
  }
  table.ucp_config_release(config);
  return made;
}

}  // namespace

bool destroying_is_fence(const wire_settings& values) noexcept { return only_known(values.transports); }

result<std::unique_ptr<transport::wire>> make_wire(const ucp_table& table, event_log& log,
                                                   const wire_settings& values) {
  transport::wire_facts facts;
  facts.transports = values.transports;
  const auto failed = [&](const char* step, ucs_status_t status) {
    // With which setting, and what was found: words are cut at their end.
    char words[sizeof(error::words)];
    std::snprintf(words, sizeof(words), "transport.transports %s: %s", values.transports.c_str(),
                  table.ucs_status_string != nullptr ? table.ucs_status_string(status) : "status of UCX");
    return fail_with_words(error_code::absent, step, words, 0,
                           static_cast<std::uint64_t>(static_cast<std::int64_t>(status)));
  };
  const auto guard = protect_from_fork(values.fork_policy, !only_known(values.transports));
  if (!guard) return std::unexpected(guard.error());
  facts.fork = *guard;
  facts.gets_take_turns = may_use_tcp(values.transports);
  if (const auto there = require_devices(table, values.transports, values.devices); !there)
    return std::unexpected(there.error());
  ucp_config_t* config = nullptr;
  ucs_status_t status = table.ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return failed("ucx.config", status);
  warn_if_overridden(log, overridden_setting::rcache, "UCX_RCACHE_ENABLE", "n");
  status = table.ucp_config_modify(config, "RCACHE_ENABLE", "n");
  if (status == UCS_OK && values.transports != "auto") {
    warn_if_overridden(log, overridden_setting::transports, "UCX_TLS", values.transports.c_str());
    status = table.ucp_config_modify(config, "TLS", values.transports.c_str());
  }
  if (status == UCS_OK) status = choose_devices(table, log, config, values.devices);
  unsigned major = 0, minor = 0, release = 0;
  table.ucp_get_version(&major, &minor, &release);
  // One rail, so that one completion speaks for all bytes; older libraries do not know the setting, and answer success.
  if (status == UCS_OK && (major > 1 || minor >= memh_minor)) {
    warn_if_overridden(log, overridden_setting::rails, "UCX_MAX_RMA_RAILS", "1");
    status = table.ucp_config_modify(config, "MAX_RMA_RAILS", "1");
  }
  ucp_context_h context = nullptr;
  if (status == UCS_OK) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    // Registrations run on another thread than the worker.
    params.mt_workers_shared = 1;
    status = table.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context);
  }
  table.ucp_config_release(config);
  if (status != UCS_OK) return failed("ucx.context", status);
  if (values.devices != all_devices) {
    facts.transports.append(" over ").append(values.devices);
    if (!uses_devices(table, context, values.devices))
      emit::setting_without_effect(log, static_cast<std::uint64_t>(transport::setting_number::devices));
  }

  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_THREAD_MODE;
  status = table.ucp_context_query(context, &attributes);
  facts.thread_safe = status == UCS_OK && attributes.thread_mode != UCS_THREAD_MODE_SINGLE;
  // Keys of a device that the other context does not have could not be told from its own.
  ucp_context_h data_context = nullptr;
  if (status == UCS_OK && values.shared_memory && only_known(values.transports))
    data_context = open_data_context(table, log, values.devices);
  if (data_context != nullptr) facts.transports.append(" and ").append(memory_transports);
  std::unique_ptr<transport::wire> made;
  if (status == UCS_OK && attributes.thread_mode != UCS_THREAD_MODE_SINGLE && !platform::heap_fault("ucx.wire"))
    made.reset(new (std::nothrow) wire_ucx(table, context, data_context, std::move(facts), values.get_bytes_max));
  if (made != nullptr) return made;
  if (data_context != nullptr) table.ucp_cleanup(data_context);
  table.ucp_cleanup(context);
  if (status != UCS_OK) return failed("ucx.context", status);
  if (attributes.thread_mode == UCS_THREAD_MODE_SINGLE)
    return fail_with_words(error_code::absent, "ucx.context",
                           "transport.ucx_library: UCX built without thread support");
  return fail(error_code::out_of_memory, "ucx.context", 0, sizeof(wire_ucx));
}

}  // namespace holdfast::inline HOLDFAST_ABI::ucx
