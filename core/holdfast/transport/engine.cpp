#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/telemetry/emit.hpp>
#include <holdfast/transport/engine.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::transport {

engine::engine(platform::host& its_host, event_log& its_log, std::unique_ptr<wire> its_wire,
               platform::poller its_poller, const settings& values, const peer_id& itself,
               std::shared_ptr<const loss_handler> watch)
    : host(its_host),
      log(its_log),
      options(values),
      self(itself),
      poller(std::move(its_poller)),
      library(std::move(its_wire)),
      table(log, options.max_operations),
      connections(log, host.clock(), options, self, platform::this_machine(), *library, table, host.executor(),
                  std::move(watch)),
      loop(log, host.clock(), poller, *library, options, *this),
      ending(*this),
      memory(*library, ending) {}

void engine::move_to(transport_state to) noexcept {
  scoped_lock lock(mutex_);
  // A transport that hung stays so, whatever its threads still come to.
  if (state.load(std::memory_order_relaxed) == transport_state::hung) return;
  state.store(to, std::memory_order_release);
  emit::transport_state(log, options.epoch, static_cast<std::uint64_t>(to));
}

result<void> engine::start(bool& may_delete) noexcept {
  may_delete = true;
  move_to(transport_state::probing);
  if (auto started = memory.start(); !started) return started;

  result<void> outcome;
  const platform::time_point bound = host.clock().now() + options.startup_timeout;
  try {
    auto started = platform::thread::start("hf-progress", [this] { progress_body(); });
    if (started)
      progress_thread_ = std::move(*started);
    else
      outcome = fail(error_code::limit_exceeded, "transport.thread", static_cast<std::uint64_t>(started.error()));
  } catch (const std::bad_alloc&) {
    outcome = fail(error_code::out_of_memory, "transport.thread");
  }
  if (outcome) {
    scoped_lock lock(mutex_);
    while (!start_reported_)
      if (!changed_.wait_until(mutex_, bound)) break;
    if (start_reported_) {
      outcome = start_outcome_;
    } else {
      outcome = fail_with_words(error_code::timed_out, "transport.start",
                                "transport.startup_timeout: no worker was opened in time");
      may_delete = false;
    }
  }
  if (outcome) return outcome;

  ending.skip();
  if (!may_delete) {
    loop.stop();
    abandon();
    return outcome;
  }
  // The worker is gone already; the context follows on the registration thread.
  memory.finish();
  if (memory.wait_left(bound + options.startup_timeout)) {
    join();
  } else {
    may_delete = false;
    abandon();
    outcome = fail_with_words(error_code::timed_out, "transport.start",
                              "transport.startup_timeout: failed, and UCX does not return");
  }
  return outcome;
}

void engine::progress_body() noexcept {
  result<void> outcome = library->open_worker(connections);
  if (outcome) {
    bool listening = false;
    const int data_descriptor = library->data_event_descriptor();
    const bool watched =
        poller.add(library->event_descriptor()) && (data_descriptor < 0 || poller.add(data_descriptor));
    if (!watched) {
      outcome = fail(error_code::out_of_memory, "transport.start");
    } else if (auto address = library->listen(options.listen_address); address) {
      listen_address.swap(*address);
      listening = true;
    } else {
      outcome = std::unexpected(address.error());
    }
    if (!outcome) {
      if (listening) library->destroy_listener();
      library->destroy_worker();
    }
  }
  const bool opened = outcome.has_value();
  report_started(std::move(outcome));
  if (opened) loop.run();
  report_left();
}

void engine::report_started(result<void> outcome) noexcept {
  scoped_lock lock(mutex_);
  start_outcome_ = std::move(outcome);
  start_reported_ = true;
  changed_.notify_all();
}

void engine::report_left() noexcept {
  scoped_lock lock(mutex_);
  progress_left_ = true;
  changed_.notify_all();
}

void engine::join() noexcept {
  if (progress_thread_.joinable()) progress_thread_.join();
  memory.join();
}

void engine::abandon() noexcept {
  log.keep_for_ever();
  if (progress_thread_.joinable()) progress_thread_.abandon();
  memory.abandon();
}

bool engine::stand_down(platform::time_point deadline) noexcept {
  loop.stop();
  memory.stand_down();
  bool left = true;
  {
    scoped_lock lock(mutex_);
    while (!progress_left_) {
      if (changed_.wait_until(mutex_, deadline)) continue;
      left = progress_left_;
      break;
    }
  }
  const bool registration_left = memory.wait_left(deadline);
  return left && registration_left;
}

bool engine::step(platform::time_point now) noexcept {
  const bool moved = connections.step(now);
  const bool ended = ending.step(now);
  return moved || ended;
}

platform::time_point engine::nearest_deadline() const noexcept {
  return std::min(connections.nearest_deadline(), ending.nearest_deadline());
}

void engine::forget_notice() noexcept {
  // Outlives the section: what the notice holds is destroyed without a lock.
  std::unique_ptr<failure_notice> notice;
  {
    scoped_lock lock(mutex_);
    notice.swap(notice_);
  }
}

void engine::arm_failed() noexcept {
  // Without its wakeup the transport cannot go on.
  emit::transport_failed(log, options.epoch);
  ending.begin_alone();
  std::unique_ptr<failure_notice> notice;
  {
    scoped_lock lock(mutex_);
    failed_ = true;
    notice = std::move(notice_);
  }
  if (notice != nullptr && host.executor().post(*notice)) static_cast<void>(notice.release());
}

result<void> engine::when_failed(std::move_only_function<void()> told) noexcept {
  if (platform::heap_fault("transport.notice")) return fail(error_code::out_of_memory, "transport.notice");
  std::unique_ptr<failure_notice> made(new (std::nothrow) failure_notice(std::move(told)));
  if (made == nullptr) return fail(error_code::out_of_memory, "transport.notice");
  {
    scoped_lock lock(mutex_);
    if (!failed_) notice_.swap(made);
    if (!failed_) return {};
  }
  if (host.executor().post(*made)) static_cast<void>(made.release());
  return {};
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
