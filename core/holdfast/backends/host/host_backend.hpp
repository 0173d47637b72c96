// Registration for a machine without a device: pages are locked in place, and nothing can fetch.
//
// Why this exists: an embedder's tests, and machines without RDMA, run the same pool with the same books; limits of
// the machine are met here as they are on a NIC.
//
// Ownership   Owned by the runtime. Requests are the backend's until it answers them.
// Units       Bytes.
// Threading   `submit_*` from any thread. Answers come from the registration thread, which is the only one that calls
//             the system.
// Failure     Answers carry them. Destroyed without `close`, it makes no system call: the thread is left alone with
//             what it may still touch.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/host/memory_calls.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/witness.hpp>
#include <holdfast/pinned/backend.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <cstdint>
#include <memory>

namespace holdfast::inline HOLDFAST_ABI {

class host_backend final : public pinned::backend {
 public:
  /// Starts the registration thread. Errors: out_of_memory; backend with the errno value if no thread could start.
  static result<std::unique_ptr<host_backend>> create(event_log& log, std::uint64_t incarnation,
                                                      const memory_calls& calls = system_memory_calls());
  ~host_backend();

  const pinned::capabilities& declared() const noexcept override { return declared_; }
  std::uint64_t incarnation() const noexcept override { return incarnation_; }
  void submit_map(pinned::map_request& request) noexcept override;
  void submit_unmap(pinned::unmap_request& request) noexcept override;
  /// Always not_configured.
  result<void> submit_get(pinned::get_request& request) noexcept override;

  /// Answers what is queued (maps with shutting_down), unlocks what is left, joins the thread. Waits for system
  /// calls only. The witness stands for registrations that were never confirmed gone. Errors: invalid_state if it was
  /// called before.
  result<witness> close();

 private:
  struct state;
  host_backend(event_log& log, std::uint64_t incarnation) noexcept;

  event_log& log_;
  std::uint64_t incarnation_;
  pinned::capabilities declared_;
  std::unique_ptr<state> state_;
};

}  // namespace holdfast::inline HOLDFAST_ABI
