// Pinned memory's backend over a transport.
//
// Why this exists: pinned memory declares what it needs of a driver, a transport knows no pinned type, and runtime is
// the one place that knows both. What is decided here is only how the words of one translate to those of the other,
// and that a reference of another life is refused before anything is submitted.
//
// Ownership   Refers to the transport, which outlives every request; the owner tears the transport down before either
//             is destroyed. Requests as pinned/backend.hpp says.
// Units       Bytes.
// Threading   From any thread. Answers of maps and unmaps on the registration thread, of GETs on the progress thread.
// Failure     By value in the answers.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/pinned/backend.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/executor.hpp>
#include <holdfast/telemetry/event_log.hpp>
#include <holdfast/transport/transport.hpp>

namespace holdfast::inline HOLDFAST_ABI {

class ucx_backend final : public pinned::backend {
 public:
  /// After the transport's start-up: capabilities are what its probes found.
  /// `address_bytes_max`: address space that may be registered, or kept for late readers after it was.
  ucx_backend(transport::transport& over, platform::executor executor, event_log& log,
              std::uint64_t address_bytes_max) noexcept;
  ~ucx_backend() = default;
  ucx_backend(const ucx_backend&) = delete;
  ucx_backend& operator=(const ucx_backend&) = delete;

  const pinned::capabilities& declared() const noexcept override { return declared_; }
  std::uint64_t incarnation() const noexcept override;
  std::uint64_t transport_epoch() const noexcept override;
  void submit_map(pinned::map_request& request) noexcept override;
  void submit_unmap(pinned::unmap_request& request) noexcept override;
  result<void> submit_get(pinned::get_request& request) noexcept override;

 private:
  // Answers that must not be given inside `submit_*`: the request could not be handed over. One courier for all of
  // them, so that answering needs no memory.
  class courier final : public transport::errand, private work_item {
   public:
    explicit courier(ucx_backend& of) noexcept : of_(of) {}
    void send() noexcept;

   private:
    void run() noexcept override;
    void drop() noexcept override;
    ucx_backend& of_;
  };

  enum class why_not : bool { ended, no_addresses };
  void refuse(pinned::map_request& request, why_not why) noexcept;
  void refuse(pinned::unmap_request& request) noexcept;
  void deliver_refusals() noexcept;
  bool take_addresses(std::uint64_t bytes) noexcept;

  friend class map_of_request;
  event_log& log_;
  const std::uint64_t address_bytes_max_;
  // Bytes of every range that was registered, while it is and for ever after: late reads of an emulated lane may name
  // it until the worker is gone, so it is never lent to anybody else.
  platform::atomic<std::uint64_t> address_bytes_{0};
  transport::transport& over_;
  platform::executor executor_;
  pinned::capabilities declared_;
  platform::mutex mutex_{lock_ranks::runtime_refused_requests};
  pinned::map_request* refused_maps_ HOLDFAST_GUARDED_BY(mutex_) = nullptr;
  pinned::map_request* full_maps_ HOLDFAST_GUARDED_BY(mutex_) = nullptr;
  pinned::unmap_request* refused_unmaps_ HOLDFAST_GUARDED_BY(mutex_) = nullptr;
  bool courier_is_out_ HOLDFAST_GUARDED_BY(mutex_) = false;
  courier courier_{*this};
};

}  // namespace holdfast::inline HOLDFAST_ABI
