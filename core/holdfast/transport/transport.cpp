#include <holdfast/platform/abi.hpp>

#include <holdfast/base/completion.hpp>
#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/telemetry/emit.hpp>
#include <holdfast/transport/engine.hpp>
#include <holdfast/transport/hello.hpp>
#include <holdfast/transport/probe.hpp>
#include <holdfast/transport/transport.hpp>

#include <new>
#include <optional>

namespace holdfast::inline HOLDFAST_ABI::transport {

namespace {

// A caller's wait for a connection's answer. Either the answer reaches the caller or his cancellation does; the record
// goes when neither can come any more.
template <class Request, class R>
class call : public Request, protected cancellation::subscriber, private pending_call {
 public:
  explicit call(completion<R> done) noexcept : done_(std::move(done)), asked_(&done_.asked()) {}

  /// False: the transport hangs, the caller was told, and the call is gone.
  bool enter(call_book& book) noexcept {
    if (!asked_->subscribe(*this)) cancel_asked();
    if (book.add(*this)) {
      book_ = &book;
      return true;
    }
    answer(fail_with_words(error_code::timed_out, "transport.wait", "the library does not return"));
    return false;
  }

 protected:
  ~call() = default;
  void answer(const R& given) noexcept {
    finish(given);
    if (asked_->unsubscribe(*this)) leave();
    leave();
  }

 private:
  void cancel_asked() noexcept final {
    finish(fail(error_code::cancelled, "transport.wait"));
    leave();
  }
  void finish(R given) noexcept {
    if (!answered_.exchange(true, std::memory_order_acq_rel)) done_.complete(std::move(given));
  }
  void leave() noexcept {
    if (!parties_.decrement()) return;
    if (book_ != nullptr) book_->remove(*this);
    destroy();
  }
  bool take_share() noexcept final { return parties_.increment_unless_zero(); }
  void tell(const error& why) noexcept final {
    finish(std::unexpected(why));
    leave();
  }
  virtual void destroy() noexcept = 0;

  completion<R> done_;
  intrusive_ptr<cancellation> asked_;
  platform::atomic<bool> answered_{false};
  call_book* book_ = nullptr;
  platform::ref_count parties_{2};  // the connections, and whoever may cancel
};

class connect_call final : public call<connect_request, result<peer_id>> {
 public:
  using call::call;
  void connected(const result<peer_id>& given) noexcept override { answer(given); }

 private:
  void destroy() noexcept override { delete this; }
};

class close_call final : public call<close_request, result<close_answer>> {
 public:
  using call::call;
  void closed(const result<close_answer>& given) noexcept override { answer(given); }

 private:
  void destroy() noexcept override { delete this; }
};

class order_call final : public call<peer_order, result<revoke_answer>> {
 public:
  using call::call;
  void carried_out(const result<revoke_answer>& given) noexcept override { answer(given); }

 private:
  void destroy() noexcept override { delete this; }
};

// The newest version that this release was tried with.
constexpr unsigned newest_tried_major = 1;
constexpr unsigned newest_tried_minor = 19;

void publish(engine& of, std::optional<result<void>>& shares_memory, const result<void>& probed) {
  capabilities& found = of.found;
  found.library = of.library->versions();
  found.wire = of.library->facts();
  found.untested_version = found.library.major != newest_tried_major || found.library.minor > newest_tried_minor;
  found.get_works = probed.has_value();
  if (!probed) found.get_absent_because = probed.error();
  found.get_uses_memh = of.library->get_uses_memh();
  found.shares_memory = shares_memory && *shares_memory;
  if (shares_memory && !*shares_memory) found.shared_memory_absent_because = shares_memory->error();
  found.destroy_is_fence = of.options.destroy_is_fence;
  found.inline_exit_seen = of.table.saw(operation_exit::inline_done);
  found.callback_exit_seen = of.table.saw(operation_exit::callback);
  found.process = platform::look_at_process();
  found.fork = found.wire.fork;
  if (found.process.memory_functions_patched) emit::memory_hooks_active(of.log, of.options.epoch);
  for (const platform::signal_state& one : found.process.signals)
    emit::signal_owner(of.log, static_cast<std::uint64_t>(one.number), static_cast<std::uint64_t>(one.owner));
  emit::fork_protection(of.log, of.options.epoch, static_cast<std::uint64_t>(found.fork));
  const std::uint64_t version =
      std::uint64_t{found.library.major} * 10000 + found.library.minor * 100 + found.library.release;
  const std::uint64_t flags = found.flags();
  emit::transport_capabilities(of.log, of.options.epoch, version, flags, found.wire.am_header_bytes_max,
                               found.process.lockable_bytes_max);
}

// How long the destructor waits for threads that are not inside the library.
constexpr platform::duration stand_down_bound = std::chrono::seconds(1);

}  // namespace

transport::transport(std::unique_ptr<engine> made) noexcept : engine_(std::move(made)) {}

result<std::unique_ptr<transport>> transport::create(platform::host& host, event_log& log, wire_factory factory,
                                                     const settings& values, loss_handler lost) {
  if (auto valid = validate(values); !valid) return std::unexpected(valid.error());
  peer_id self{values.worker_id, values.incarnation};
  if (self.worker_id == 0) self.worker_id = host.identity_seed().draw();
  if (self.incarnation == 0) self.incarnation = host.identity_seed().draw();
  const platform::time_point deadline = host.clock().now() + values.startup_timeout;

  auto library = factory();
  if (!library) return std::unexpected(library.error());
  auto poller = platform::poller::create(host);
  if (!poller) {
    (*library)->close_context();
    return fail(error_code::limit_exceeded, "transport.create", static_cast<std::uint64_t>(poller.error()));
  }
  std::unique_ptr<engine> made;
  std::unique_ptr<transport> facade;
  try {
    std::shared_ptr<const loss_handler> watch;
    if (lost) watch = std::make_shared<const loss_handler>(std::move(lost));
    made = std::make_unique<engine>(host, log, std::move(*library), std::move(*poller), values, self, std::move(watch));
    facade.reset(new transport(nullptr));
  } catch (const std::bad_alloc&) {
    // A wire whose worker was never opened closes its context when it is destroyed.
    return fail(error_code::out_of_memory, "transport.create", 0, sizeof(engine));
  }

  bool may_delete = true;
  if (auto started = made->start(may_delete); !started) {
    if (may_delete) {
      // Reported absent when nothing of it is left.
      made.reset();
      emit::transport_state(log, values.epoch, static_cast<std::uint64_t>(transport_state::absent));
    } else {
      // The library did not return in time: whatever its threads still use stays, for ever.
      const std::uint64_t operations = made->table.outstanding();
      const std::uint64_t registrations = made->memory.regions();
      emit::teardown_hung(log, values.epoch, operations, registrations);
      made->move_to(transport_state::absent);
      static_cast<void>(made.release());
    }
    return std::unexpected(started.error());
  }
  if (!made->library->get_uses_memh()) {
    const wire_versions& library_is = made->library->versions();
    emit::destination_registered_by_library(log, library_is.major, library_is.minor);
  }
  std::optional<result<void>> shares_memory;
  if (values.shared_memory) {
    const std::size_t address_bytes = made->library->worker_address().size();
    if (address_bytes != 0 && address_bytes <= worker_address_max)
      shares_memory.emplace();
    else
      emit::setting_without_effect(log, static_cast<std::uint64_t>(setting_number::shared_memory));
  }
  const bool wanted = shares_memory.has_value();
  const auto probed = probe_gets(*made, shares_memory, deadline);
  if (wanted && shares_memory && !*shares_memory)
    emit::setting_without_effect(log, static_cast<std::uint64_t>(setting_number::shared_memory));
  if (probed)
    made->get_works.store(true, std::memory_order_release);
  else
    facade->get_absent_because_ = probed.error();
  publish(*made, shares_memory, probed);
  made->move_to(transport_state::running);
  facade->engine_ = std::move(made);
  return facade;
}

transport::~transport() {
  if (engine_ == nullptr) return;
  if (engine_->process != platform::process_number()) {
    // A forked child: threads, endpoints and registrations are the parent's, and so is everything that they use.
    static_cast<void>(engine_.release());
    return;
  }
  engine* const left = engine_.release();
  left->forget_notice();
  if (!left->ending.gone() && !left->ending.hung()) {
    // Not torn down: what a device may reach stays, and so does everything that could tell of it.
    const std::uint64_t operations = left->table.outstanding();
    const std::uint64_t registrations = left->memory.regions();
    emit::teardown_hung(left->log, left->options.epoch, operations, registrations);
    left->move_to(transport_state::hung);
    left->calls.tell_all(fail(error_code::shutting_down, "transport.wait").error());
  }
  const bool was_gone = left->ending.gone();
  if (left->ending.owner_leaves()) {
    left->join();
    delete left;
  } else if (!was_gone) {
    if (left->stand_down(left->host.clock().now() + stand_down_bound))
      left->join();
    else
      left->abandon();
  }
}

const peer_id& transport::self() const noexcept { return engine_->self; }
std::uint64_t transport::incarnation() const noexcept { return engine_->self.incarnation; }
std::uint64_t transport::epoch() const noexcept { return engine_->options.epoch; }
std::string_view transport::listen_address() const noexcept { return engine_->listen_address; }
const wire_versions& transport::versions() const noexcept { return engine_->library->versions(); }
bool transport::get_works() const noexcept { return engine_->get_works.load(std::memory_order_acquire); }
const error& transport::get_absent_because() const noexcept { return get_absent_because_; }
const capabilities& transport::found() const noexcept { return engine_->found; }
bool transport::get_uses_memh() const noexcept { return engine_->library->get_uses_memh(); }
bool transport::destroy_is_fence() const noexcept { return engine_->options.destroy_is_fence; }

bool transport::is_running() const noexcept {
  return engine_->state.load(std::memory_order_acquire) == transport_state::running;
}
bool transport::is_ready(const peer_id& peer) const noexcept { return presence(peer) == peer_presence::ready; }
peer_presence transport::presence(const peer_id& peer) const noexcept {
  return engine_->connections.directory().presence(peer);
}

transport_snapshot transport::snapshot() const noexcept {
  transport_snapshot seen;
  seen.state = engine_->state.load(std::memory_order_acquire);
  seen.operations = engine_->table.counts();
  seen.connections = engine_->connections.directory().counts();
  seen.endpoints_parked = engine_->connections.parked();
  seen.keys = engine_->connections.keys();
  seen.registrations = engine_->memory.regions();
  return seen;
}

result<void> transport::submit_get(transfer& what) noexcept {
  if (!get_works()) return fail(error_code::not_configured, "transport.get");
  if (what.bytes == 0 || what.destination == nullptr)
    return fail(error_code::out_of_range, "transport.get", 0, 0, what.bytes);
  if (what.incarnation != what.peer.incarnation)
    return fail(error_code::stale_key, "transport.get", what.peer.worker_id, what.generation, what.incarnation);
  switch (presence(what.peer)) {
    case peer_presence::ready: break;
    case peer_presence::another_life:
      return fail(error_code::stale_key, "transport.get", what.peer.worker_id, what.generation, what.incarnation);
    case peer_presence::absent: return fail(error_code::unreachable, "transport.get", what.peer.worker_id);
  }
  const wire_region destination =
      get_uses_memh() && what.destination_region != 0 ? engine_->memory.handle_of(what.destination_region) : nullptr;
  engine_->connections.prepare(what, destination);
  if (auto admitted = engine_->table.admit(what, operation_kind::get, what.peer, what.bytes); !admitted)
    return admitted;
  what.accepted();
  if (engine_->loop.submit(what)) return {};
  engine_->table.retract(what);
  return fail(error_code::shutting_down, "transport.get");
}

bool transport::submit_map(map_job& job) noexcept { return !engine_->ending.ends() && engine_->memory.submit(job); }
bool transport::submit_unmap(unmap_job& job) noexcept { return engine_->memory.submit(job); }
bool transport::submit_errand(errand& job) noexcept { return engine_->memory.submit(job); }

result<void> transport::when_failed(std::move_only_function<void()> told) noexcept {
  return engine_->when_failed(std::move(told));
}

void transport::start_connect(connect_handler handler, std::string address, peer_id expected) {
  auto done = completion<result<peer_id>>::start(std::move(handler), engine_->host.executor(), "transport.connect");
  if (!done) return;
  if (platform::heap_fault("transport.connect"))
    return done->complete(fail(error_code::out_of_memory, "transport.connect"));
  auto* const request = new (std::nothrow) connect_call(std::move(*done));
  if (request == nullptr) return done->complete(fail(error_code::out_of_memory, "transport.connect"));
  request->address.swap(address);
  request->expected = expected;
  request->set = &engine_->connections;
  if (request->enter(engine_->calls) && !engine_->loop.submit(*request)) request->refuse();
}

void transport::start_close(close_handler handler, peer_id peer, platform::time_point deadline) {
  auto done = completion<result<close_answer>>::start(std::move(handler), engine_->host.executor(), "transport.close");
  if (!done) return;
  if (platform::heap_fault("transport.close"))
    return done->complete(fail(error_code::out_of_memory, "transport.close"));
  auto* const request = new (std::nothrow) close_call(std::move(*done));
  if (request == nullptr) return done->complete(fail(error_code::out_of_memory, "transport.close"));
  request->peer = peer;
  request->deadline = deadline;
  request->set = &engine_->connections;
  if (request->enter(engine_->calls) && !engine_->loop.submit(*request)) request->refuse();
}

void transport::start_order(order_handler handler, peer_id peer, peer_order::what asked, death_evidence evidence) {
  auto done = completion<result<revoke_answer>>::start(std::move(handler), engine_->host.executor(), "transport.peer");
  if (!done) return;
  if (platform::heap_fault("transport.peer")) return done->complete(fail(error_code::out_of_memory, "transport.peer"));
  auto* const request = new (std::nothrow) order_call(std::move(*done));
  if (request == nullptr) return done->complete(fail(error_code::out_of_memory, "transport.peer"));
  request->peer = peer;
  request->asked = asked;
  request->evidence = evidence;
  request->set = &engine_->connections;
  if (request->enter(engine_->calls) && !engine_->loop.submit(*request)) request->refuse();
}

void transport::start_teardown(teardown_handler handler, platform::time_point deadline) {
  engine_->ending.begin(deadline, completion<teardown::answer>::start(std::move(handler), engine_->host.executor(),
                                                                      "transport.teardown"));
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
