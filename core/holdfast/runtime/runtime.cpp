#include <holdfast/platform/abi.hpp>

#include <holdfast/runtime/runtime.hpp>

#include <holdfast/base/capacity_ledger.hpp>
#include <holdfast/base/block.hpp>
#include <holdfast/base/event_cell.hpp>
#include <holdfast/base/frame_pool.hpp>
#include <holdfast/base/gate.hpp>
#include <holdfast/base/task.hpp>
#include <holdfast/pinned/task_handler.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/platform/process.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

namespace {

constexpr const char* shutdown_name = "runtime.shutdown";
constexpr std::uint64_t ledger_id = 1;
constexpr std::uint64_t pool_id = 1;
constexpr std::uint64_t finished_gate_id = 1;

/// How long a device may take to end that nothing was registered with.
constexpr platform::duration unused_end_bound = std::chrono::seconds(5);

/// How long a shutdown may take that began because the device failed. Whoever asks for one meanwhile joins it, and waits no
/// longer than he wanted.
constexpr platform::duration failed_device_bound = std::chrono::seconds(10);

/// The runtime is not going to be: the device runs already, and its threads must not be left behind. False: they did
/// not come back in time, and still use what they were given.
bool end_unused(device& made, platform::time_point deadline) {
  detail::block_signal ended;
  bool gone = false;
  made.begin_end(deadline, [&ended, &gone](result<device_end> end) {
    gone = end.has_value() && end->proof.has_value();
    ended.wake();
  });
  ended.wait();
  return gone;
}

/// What buffers need that outlive the runtime; shared with the pool.
struct books {
  /// Null: host memory is out (site "runtime.books").
  static std::shared_ptr<books> make(platform::host& host, const runtime_options& options) {
    if (platform::heap_fault("runtime.books")) return nullptr;
    std::unique_ptr<frame_pool> frames(new (std::nothrow) frame_pool);
    if (!frames) return nullptr;
    auto* const made = new (std::nothrow) books(host, options, std::move(frames));
    // Threads inside a library that did not return still speak to the log: then the books stay.
    return std::shared_ptr<books>(made, [](books* last) {
      if (last != nullptr && !last->log.kept_for_ever()) delete last;
    });
  }
  ~books() {
    // The last owner may be a frame that is being destroyed, and goes back to its pool after this.
    if (frames->frames_out() != 0) static_cast<void>(frames.release());
  }

  // Destroyed bottom-up: the log is the last that speaks.
  event_log log;
  std::unique_ptr<frame_pool> frames;
  task_environment environment;
  capacity_ledger ledger;

 private:
  books(platform::host& host, const runtime_options& options, std::unique_ptr<frame_pool> made)
      : log(host.clock(), options.recorded_events, options.recorded_level),
        frames(std::move(made)),
        environment(host.executor(), host.clock(), log, *frames),
        ledger(ledger_id, options.pinned.registered_bytes_budget, log) {}
};

/// Where the device's answer and the shutdown meet; shared, since the answer may come after the deadline.
class end_cell final : public ref_counted<end_cell> {
 public:
  event_cell<result<device_end>> ended;

 private:
  friend class ref_counted<end_cell>;
  ~end_cell() = default;
};

}  // namespace

class runtime::parts final : public weak_ref_counted<runtime::parts> {
 public:
  parts(platform::host& on, std::shared_ptr<books> opened) noexcept
      : host(on), kept(std::move(opened)), finished(finished_gate_id, kept->log) {}

  /// Answers until when this caller waits for the report: for ever if the shutdown ends by his deadline anyway, else his
  /// deadline; another's shutdown may have longer.
  platform::time_point begin_shutdown(platform::time_point deadline) noexcept;
  static task<void> run(task_context context, intrusive_ptr<parts> self, platform::time_point deadline);
  static task<result<runtime_report>> wait(task_context context, intrusive_ptr<parts> self, platform::time_point until);
  void run_without_waiting() noexcept;
  void note_end(result<device_end> end) noexcept;
  void finish(platform::time_point began) noexcept;

  // In the order of birth; C++ destroys them bottom-up. The backend is the pool's, so the device is older and is
  // destroyed later, but stopped later too: see `run`.
  platform::host& host;
  const std::shared_ptr<books> kept;
  std::unique_ptr<device> made;
  std::optional<pinned::memory> memory;
  const std::uint64_t process = platform::process_number();
  gate finished;
  gate::ticket entry;  // of the shutdown, until `run` has it; destroyed before its gate
  static constexpr std::int64_t not_begun = std::numeric_limits<std::int64_t>::min();
  platform::atomic<std::int64_t> ends_by{not_begun};  // the deadline of the shutdown that runs
  platform::atomic<bool> reported{false};
  runtime_report report;

 private:
  friend class weak_ref_counted<parts>;
  ~parts() = default;
  // What may refer to these parts weakly is destroyed with the device; in the order of the destructor.
  void last_released() noexcept {
    memory.reset();
    made.reset();
  }
};

bool runtime_report::clean() const noexcept {
  return witnessed && bytes_registered == 0 && device_operations == 0 && device_registrations == 0 &&
         released.spans_quarantined == 0 && pinned.maps_outstanding == 0 && pinned.tickets_abandoned == 0;
}

std::string runtime_report::to_json() const {
  std::string text = "{\"clean\": ";
  text.append(clean() ? "true" : "false")
      .append(", \"took_ms\": ")
      .append(std::to_string(took_ns / 1'000'000))
      .append(", \"witnessed\": ")
      .append(witnessed ? "true" : "false")
      .append(", \"left\": {\"bytes_registered\": ")
      .append(std::to_string(bytes_registered))
      .append(", \"operations\": ")
      .append(std::to_string(device_operations))
      .append(", \"registrations\": ")
      .append(std::to_string(device_registrations))
      .append(", \"spans_quarantined\": ")
      .append(std::to_string(released.spans_quarantined))
      .append("}, \"pinned\": ")
      .append(pinned.to_json());
  return text.append("}");
}

result<runtime> runtime::create(platform::host& host, const runtime_options& options, device_factory make_device) {
  constexpr const char* create = "runtime.create";
  const result<void> valid = pinned::validate(options.pinned);
  if (!valid) return std::unexpected(valid.error());
  std::shared_ptr<books> kept = books::make(host, options);
  if (!kept) return fail(error_code::out_of_memory, create);
  intrusive_ptr<parts> owned;
  if (!platform::heap_fault("runtime.parts")) owned = adopt_new(new (std::nothrow) parts(host, std::move(kept)));
  if (!owned) return fail(error_code::out_of_memory, create);

  const std::uint64_t incarnation = host.identity_seed().draw();
  result<std::unique_ptr<device>> made = make_device(host, owned->kept->log, incarnation);
  if (!made) return std::unexpected(made.error());
  owned->made = std::move(*made);
  result<pinned::memory> memory =
      pinned::memory::create(pool_id, host.pages(), owned->kept->environment, owned->kept->ledger,
                             owned->made->backend(), options.pinned, owned->kept);
  if (!memory) {
    if (!end_unused(*owned->made, host.clock().now() + unused_end_bound)) static_cast<void>(owned.detach());
    return std::unexpected(memory.error());
  }
  owned->memory.emplace(std::move(*memory));
  const result<void> watched = owned->made->when_failed([weak = weak_intrusive_ptr<parts>(owned)] {
    // The pool must not go on as if its device were there: it closes, and the device gets its end.
    if (const intrusive_ptr<parts> self = weak.lock())
      self->begin_shutdown(self->host.clock().now() + failed_device_bound);
  });
  if (!watched) {
    runtime made_in_vain(std::move(owned));
    static_cast<void>(made_in_vain.parts_->memory->shut_down_without_waiting());
    if (!end_unused(*made_in_vain.parts_->made, host.clock().now() + unused_end_bound))
      static_cast<void>(made_in_vain.parts_.detach());
    return std::unexpected(watched.error());
  }
  return runtime(std::move(owned));
}

runtime::runtime(intrusive_ptr<parts> owned) noexcept : parts_(std::move(owned)) {}
runtime::runtime(runtime&&) noexcept = default;
runtime::~runtime() {
  // A forked child: nothing of the parent's runtime may be used there, its threads do not exist.
  if (parts_ && parts_->process != platform::process_number()) static_cast<void>(parts_.detach());
}

pinned::memory& runtime::pinned() noexcept { return *parts_->memory; }
transport::transport* runtime::peers() noexcept { return parts_->made->peers(); }
std::uint64_t runtime::incarnation() const noexcept { return parts_->made->backend().incarnation(); }
event_log& runtime::events() noexcept { return parts_->kept->log; }
platform::time_point runtime::now() const noexcept { return parts_->host.clock().now(); }

// ---- Shutdown -----------------------------------------------------------------------------------

namespace {

/// A mark on the way to the deadline, in percent of it. Pinned memory has until 60, the device until 90; what is left is
/// for the report.
platform::time_point cut_at(int percent, platform::time_point began, platform::time_point deadline) noexcept {
  if (deadline == platform::never || deadline <= began) return deadline;
  return began + (deadline - began) / 100 * percent;
}

}  // namespace

void runtime::start_shutdown(platform::time_point deadline, shutdown_handler handler) {
  const platform::time_point until = parts_->begin_shutdown(deadline);
  pinned::start_with_handler<result<runtime_report>>(
      parts_->kept->environment, shutdown_name, std::move(handler),
      [&](task_context context) { return parts::wait(context, parts_, until); });
}

platform::time_point runtime::parts::begin_shutdown(platform::time_point deadline) noexcept {
  const std::int64_t asked = deadline.time_since_epoch().count();
  std::int64_t running = not_begun;
  if (!ends_by.compare_exchange_strong(running, asked, std::memory_order_acq_rel))
    return asked < running ? deadline : platform::never;
  entry = finished.enter();
  finished.close();
  const task_context context(kept->environment, shutdown_name);
  intrusive_ptr<parts> self(this);
  if (!spawn(run(context, std::move(self), deadline))) run_without_waiting();
  return platform::never;
}

task<void> runtime::parts::run(task_context context, intrusive_ptr<parts> owner, platform::time_point deadline) {
  const intrusive_ptr<parts> self = std::move(owner);
  // Not a parameter: without memory for this frame it would have left before there is a report, and compilers disagree
  // on when.
  const gate::ticket running = std::move(self->entry);
  const platform::time_point began = self->host.clock().now();
  const platform::time_point cut = cut_at(60, began, deadline);
  pinned::memory* const memory = &*self->memory;
  result<pinned::shutdown_report> stopped = co_await pinned::memory::shutdown(context, memory, cut);
  // Without memory for a task: in this very call, without waiting. The device must not end under an open pool.
  self->report.pinned = stopped ? *stopped : memory->shut_down_without_waiting();

  intrusive_ptr<end_cell> cell = adopt_new(new (std::nothrow) end_cell);
  if (cell) {
    self->made->begin_end(cut_at(90, began, deadline), [cell](result<device_end> end) mutable {
      // Too late, and nobody waits: the proof goes unused, and what it would have proved stays leaked.
      static_cast<void>(cell->ended.complete(std::move(end)));
    });
    std::expected<result<device_end>, wait_end> end = co_await cell->ended.wait(deadline);
    if (end) self->note_end(std::move(*end));
  }
  self->finish(began);
}

// The executor was stopped: nothing can be waited for, so the device is not ended either. What is left is reported.
void runtime::parts::run_without_waiting() noexcept {
  const platform::time_point began = host.clock().now();
  report.pinned = memory->shut_down_without_waiting();
  finish(began);
  entry.leave();
}

void runtime::parts::note_end(result<device_end> end) noexcept {
  if (!end) return;
  report.device_operations = end->operations;
  report.device_registrations = end->registrations;
  if (!end->proof) return;
  report.witnessed = true;
  const result<pinned::released_report> released = memory->release_unconfirmed(std::move(*end->proof));
  if (released) report.released = *released;
}

void runtime::parts::finish(platform::time_point began) noexcept {
  report.bytes_registered = kept->ledger.snapshot().charged_bytes;
  report.took_ns = (host.clock().now() - began).count();
  reported.store(true, std::memory_order_release);
}

task<result<runtime_report>> runtime::parts::wait([[maybe_unused]] task_context context, intrusive_ptr<parts> self,
                                                  platform::time_point until) {
  co_await self->finished.drain(until);
  if (self->reported.load(std::memory_order_acquire)) co_return self->report;
  const bool late = self->host.clock().now() >= until;
  co_return fail(late ? error_code::timed_out : error_code::cancelled, shutdown_name);
}

}  // namespace holdfast::inline HOLDFAST_ABI
