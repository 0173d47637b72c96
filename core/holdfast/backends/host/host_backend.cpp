#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/host/host_backend.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/platform/condition_variable.hpp>
#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/platform/mutex.hpp>
#include <holdfast/platform/thread.hpp>
#include <holdfast/telemetry/emit.hpp>

#include <cstring>
#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

using pinned::map_request;
using pinned::mapped_range;
using pinned::unmap_request;
using pinned::unmap_verdict;

/// What the registration thread works on. Apart from the backend, so that a thread that is stuck in a system call
/// keeps valid memory when the backend is destroyed.
struct host_backend::state {
  explicit state(const memory_calls& calls) noexcept : calls(calls) {}

  struct locked_range {
    std::uint64_t region;
    std::byte* address;
    std::size_t bytes;
    locked_range* next;
  };

  void run() noexcept;
  void map(map_request& request) noexcept;
  unmap_verdict unmap(std::uint64_t region) noexcept;
  void unlock_all() noexcept;

  const memory_calls& calls;
  platform::mutex mutex{lock_ranks::transport_registration};
  platform::condition_variable work;
  map_request* first_map HOLDFAST_GUARDED_BY(mutex) = nullptr;
  map_request* last_map HOLDFAST_GUARDED_BY(mutex) = nullptr;
  unmap_request* first_unmap HOLDFAST_GUARDED_BY(mutex) = nullptr;
  unmap_request* last_unmap HOLDFAST_GUARDED_BY(mutex) = nullptr;
  bool stopping HOLDFAST_GUARDED_BY(mutex) = false;

  // The registration thread's own.
  locked_range* locked = nullptr;
  std::uint64_t locked_bytes = 0;
  std::uint64_t last_region = 0;

  platform::thread thread;
};

void host_backend::state::run() noexcept {
  scoped_lock lock(mutex);
  for (;;) {
    if (unmap_request* const request = first_unmap) {
      first_unmap = request->next_unmap;
      lock.unlock();
      const unmap_verdict verdict = unmap(request->region);
      request->unmapped(verdict);
    } else if (map_request* const wanted = first_map) {
      first_map = wanted->next_map;
      const bool refuse = stopping;
      lock.unlock();
      if (refuse)
        wanted->mapped(fail(error_code::shutting_down, "host.map"));
      else
        map(*wanted);
    } else if (stopping) {
      break;
    } else {
      work.wait(mutex);
      continue;
    }
    lock.lock();
  }
  lock.unlock();
  unlock_all();
}

void host_backend::state::map(map_request& request) noexcept {
  const std::size_t bytes = request.bytes;
  locked_range* const record = platform::heap_fault("host.region") ? nullptr : new (std::nothrow) locked_range;
  if (record == nullptr) {
    request.mapped(fail(error_code::out_of_memory, "host.map", 0, sizeof(locked_range)));
    return;
  }
  if (const int status = calls.lock(request.address, bytes); status != 0) {
    delete record;
    request.mapped(fail(error_code::limit_exceeded, "host.map", 0, bytes, calls.limit(), locked_bytes));
    return;
  }
  *record = {++last_region, request.address, bytes, locked};
  locked = record;
  locked_bytes += bytes;
  mapped_range range{record->region, request.address, bytes, {}};
  std::byte name[sizeof range.region];
  std::memcpy(name, &range.region, sizeof name);
  range.key.assign(name);
  request.mapped(range);
}

unmap_verdict host_backend::state::unmap(std::uint64_t region) noexcept {
  locked_range** link = &locked;
  while (*link != nullptr && (*link)->region != region) link = &(*link)->next;
  locked_range* const record = *link;
  if (record == nullptr || calls.unlock(record->address, record->bytes) != 0) return unmap_verdict::unknown;
  *link = record->next;
  locked_bytes -= record->bytes;
  delete record;
  return unmap_verdict::confirmed;
}

void host_backend::state::unlock_all() noexcept {
  while (locked_range* const record = locked) {
    calls.unlock(record->address, record->bytes);
    locked = record->next;
    delete record;
  }
}

result<std::unique_ptr<host_backend>> host_backend::create(event_log& log, std::uint64_t incarnation,
                                                           const memory_calls& calls) {
  if (platform::heap_fault("host.backend")) return fail(error_code::out_of_memory, "host.create");
  std::unique_ptr<host_backend> made(new (std::nothrow) host_backend(log, incarnation));
  if (!made) return fail(error_code::out_of_memory, "host.create");
  made->state_.reset(new (std::nothrow) state(calls));
  if (!made->state_) return fail(error_code::out_of_memory, "host.create");
  made->declared_.kind = "host";
  made->declared_.destroy_is_fence = true;
  made->declared_.unmap_verdict_reported = true;
  auto started = platform::thread::start("hf-register", [work = made->state_.get()] { work->run(); });
  if (!started) return fail(error_code::backend, "host.create", 0, static_cast<std::uint64_t>(started.error()));
  made->state_->thread = std::move(*started);
  return made;
}

host_backend::host_backend(event_log& log, std::uint64_t incarnation) noexcept : log_(log), incarnation_(incarnation) {}

host_backend::~host_backend() {
  if (!state_ || !state_->thread.joinable()) return;
  // Nobody said that the device is gone, so nothing is unlocked and nobody is waited for.
  emit::teardown_hung(log_, std::uint64_t{1}, std::uint64_t{0}, std::uint64_t{0});
  state_->thread.abandon();
  static_cast<void>(state_.release());
}

void host_backend::submit_map(map_request& request) noexcept {
  request.next_map = nullptr;
  scoped_lock lock(state_->mutex);
  (state_->first_map == nullptr ? state_->first_map : state_->last_map->next_map) = &request;
  state_->last_map = &request;
  lock.unlock();
  state_->work.notify_one();
}

void host_backend::submit_unmap(unmap_request& request) noexcept {
  request.next_unmap = nullptr;
  scoped_lock lock(state_->mutex);
  (state_->first_unmap == nullptr ? state_->first_unmap : state_->last_unmap->next_unmap) = &request;
  state_->last_unmap = &request;
  lock.unlock();
  state_->work.notify_one();
}

result<void> host_backend::submit_get(pinned::get_request&) noexcept {
  return fail(error_code::not_configured, "host.get");
}

result<witness> host_backend::close() {
  if (!state_->thread.joinable()) return fail(error_code::invalid_state, "host.close");
  {
    scoped_lock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->work.notify_one();
  state_->thread.join();
  witness gone(incarnation_, 1, true);
  emit::witness_issued(log_, gone.epoch(), 0);
  return gone;
}

}  // namespace holdfast::inline HOLDFAST_ABI
