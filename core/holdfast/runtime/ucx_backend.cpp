#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/heap_fault.hpp>
#include <holdfast/runtime/ucx_backend.hpp>
#include <holdfast/telemetry/emit.hpp>

#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

class map_of_request final : public transport::map_job {
 public:
  map_of_request(pinned::map_request& request, ucx_backend& of) noexcept : request_(request), of_(of) {
    address = request.address;
    bytes = request.bytes;
  }

  void mapped(const result<transport::registered_memory>& answer) noexcept override {
    pinned::map_request& request = request_;
    result<pinned::mapped_range> told;
    if (answer)
      told = pinned::mapped_range{answer->region, answer->address, answer->bytes, answer->key};
    else
      told = std::unexpected(answer.error());
    // Nobody ever had a key of it.
    if (!answer) of_.address_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    delete this;
    request.mapped(told);
  }

 private:
  pinned::map_request& request_;
  ucx_backend& of_;
};

namespace {

class unmap_of_request final : public transport::unmap_job {
 public:
  explicit unmap_of_request(pinned::unmap_request& request) noexcept : request_(request) { region = request.region; }

  void unmapped(transport::unmap_result verdict) noexcept override {
    pinned::unmap_request& request = request_;
    delete this;
    request.unmapped(verdict == transport::unmap_result::confirmed ? pinned::unmap_verdict::confirmed
                     : verdict == transport::unmap_result::refused ? pinned::unmap_verdict::refused
                                                                   : pinned::unmap_verdict::unknown);
  }

 private:
  pinned::unmap_request& request_;
};

class transfer_of_request final : public transport::transfer {
 public:
  explicit transfer_of_request(pinned::get_request& request) noexcept : request_(request) {
    peer = request.peer;
    remote_address = request.source.address;
    key = request.source.key;
    generation = request.source.generation;
    incarnation = request.source.incarnation;
    destination = request.destination;
    bytes = request.bytes;
    destination_region = request.destination_region;
  }

  void accepted() noexcept override {
    request_.operation = id();
    request_.accepted();
  }
  bool wanted() const noexcept override { return !request_.abandoned(); }
  intrusive_ptr<fate_listener> listener() const noexcept override { return request_.listener(); }

  void orphaned() noexcept override { request_.orphaned(); }
  void ended(transport::transfer_outcome outcome, const error& why) noexcept override {
    pinned::get_request& request = request_;
    const error reason = why;
    delete this;
    switch (outcome) {
      case transport::transfer_outcome::ok: return request.ended(pinned::get_outcome::ok, reason);
      case transport::transfer_outcome::failed: return request.ended(pinned::get_outcome::failed, reason);
      case transport::transfer_outcome::never_started: return request.ended(pinned::get_outcome::never_started, reason);
      case transport::transfer_outcome::indeterminate: return request.ended(pinned::get_outcome::indeterminate, reason);
    }
  }

 private:
  pinned::get_request& request_;
};

}  // namespace

ucx_backend::ucx_backend(transport::transport& over, platform::executor executor, event_log& log,
                         std::uint64_t address_bytes_max) noexcept
    : log_(log), address_bytes_max_(address_bytes_max), over_(over), executor_(executor) {
  declared_.kind = "ucx";
  declared_.get_works = over.get_works();
  declared_.get_uses_memh = over.get_uses_memh();
  declared_.destroy_is_fence = over.destroy_is_fence();
  // UCX answers success for every unmap: the verdict is assumed, and it never refuses.
  declared_.unmap_verdict_reported = false;
  declared_.can_refuse_unmap = false;
  // Until a device does the reading, the owner's progress thread reads whatever address a request names.
  declared_.keeps_tombstones = true;
}

std::uint64_t ucx_backend::transport_epoch() const noexcept { return over_.epoch(); }

std::uint64_t ucx_backend::incarnation() const noexcept { return over_.incarnation(); }

void ucx_backend::submit_map(pinned::map_request& request) noexcept {
  if (!take_addresses(request.bytes)) return refuse(request, why_not::no_addresses);
  auto* const job =
      platform::heap_fault("ucx_backend.map") ? nullptr : new (std::nothrow) map_of_request(request, *this);
  if (job != nullptr && over_.submit_map(*job)) return;
  delete job;
  address_bytes_.fetch_sub(request.bytes, std::memory_order_relaxed);
  refuse(request, why_not::ended);
}

bool ucx_backend::take_addresses(std::uint64_t bytes) noexcept {
  if (!declared_.keeps_tombstones) return true;
  const std::uint64_t before = address_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (before <= address_bytes_max_ && bytes <= address_bytes_max_ - before) return true;
  address_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  emit::tombstones_full(log_, before, address_bytes_max_, bytes);
  return false;
}

void ucx_backend::submit_unmap(pinned::unmap_request& request) noexcept {
  auto* const job = platform::heap_fault("ucx_backend.unmap") ? nullptr : new (std::nothrow) unmap_of_request(request);
  if (job != nullptr && over_.submit_unmap(*job)) return;
  delete job;
  refuse(request);
}

result<void> ucx_backend::submit_get(pinned::get_request& request) noexcept {
  if (!declared_.get_works) return fail(error_code::not_configured, "ucx.get");
  // The life that issued the reference must be the one that is asked, whatever address it answers at.
  if (request.source.incarnation != request.peer.incarnation)
    return fail(error_code::stale_key, "ucx.get", request.peer.worker_id, request.source.generation,
                request.source.incarnation);
  if (request.bytes > request.source.length)
    return fail(error_code::out_of_range, "ucx.get", 0, 0, request.bytes, request.source.length);
  auto* const made =
      platform::heap_fault("ucx_backend.get") ? nullptr : new (std::nothrow) transfer_of_request(request);
  if (made == nullptr) return fail(error_code::out_of_memory, "ucx.get", 0, sizeof(transfer_of_request));
  auto submitted = over_.submit_get(*made);
  if (!submitted) delete made;
  return submitted;
}

void ucx_backend::refuse(pinned::map_request& request, why_not why) noexcept {
  bool send = false;
  {
    scoped_lock lock(mutex_);
    pinned::map_request*& among = why == why_not::ended ? refused_maps_ : full_maps_;
    request.next_map = among;
    among = &request;
    send = !std::exchange(courier_is_out_, true);
  }
  if (send) courier_.send();
}

void ucx_backend::refuse(pinned::unmap_request& request) noexcept {
  bool send = false;
  {
    scoped_lock lock(mutex_);
    request.next_unmap = refused_unmaps_;
    refused_unmaps_ = &request;
    send = !std::exchange(courier_is_out_, true);
  }
  if (send) courier_.send();
}

void ucx_backend::courier::send() noexcept {
  // The registration thread, or after its end the executor; after the executor's end only this thread is left.
  if (of_.over_.submit_errand(*this)) return;
  if (of_.executor_.post(*this)) return;
  run();
}

void ucx_backend::courier::run() noexcept { of_.deliver_refusals(); }
void ucx_backend::courier::drop() noexcept { of_.deliver_refusals(); }

void ucx_backend::deliver_refusals() noexcept {
  pinned::map_request* maps = nullptr;
  pinned::map_request* full = nullptr;
  pinned::unmap_request* unmaps = nullptr;
  {
    scoped_lock lock(mutex_);
    maps = std::exchange(refused_maps_, nullptr);
    full = std::exchange(full_maps_, nullptr);
    unmaps = std::exchange(refused_unmaps_, nullptr);
    courier_is_out_ = false;
  }
  while (full != nullptr) {
    pinned::map_request& request = *std::exchange(full, full->next_map);
    request.mapped(
        fail_with_words(error_code::limit_exceeded, "ucx.map", "transport.tombstone_bytes_max", 0, request.bytes));
  }
  while (maps != nullptr) {
    pinned::map_request& request = *std::exchange(maps, maps->next_map);
    request.mapped(fail(over_.is_running() ? error_code::out_of_memory : error_code::shutting_down, "ucx.map"));
  }
  while (unmaps != nullptr) {
    // Not handed to the library at all; for whoever asked, its fate is as unknown as any other silence.
    pinned::unmap_request& request = *std::exchange(unmaps, unmaps->next_unmap);
    request.unmapped(pinned::unmap_verdict::unknown);
  }
}

}  // namespace holdfast::inline HOLDFAST_ABI
