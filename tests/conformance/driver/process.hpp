// A small program over the table of UCX functions: one context, one worker, and what a probe does with them.
//
// Ownership   `end` gives everything back, in order. A probe that cannot says so.
// Threading   One thread.
#pragma once

#include "probe.hpp"

#include <cstring>
#include <deque>
#include <vector>

namespace holdfast::driver_probe {

/// What a callback leaves. Must outlive its operation.
struct outcome {
  int calls = 0;
  ucs_status_t status = UCS_INPROGRESS;
  bool ended() const noexcept { return status != UCS_INPROGRESS; }
};

std::byte pattern(std::size_t at) noexcept;

class process;
struct awaited {
  process* of;
  outcome* end;
};

class process {
 public:
  explicit process(bench& b, const char* transports = nullptr);
  process(const process&) = delete;
  process& operator=(const process&) = delete;

  // Endpoints
  ucs_status_t listen(std::uint16_t port = 0);
  std::uint16_t port();
  ucp_ep_h connect_socket(std::uint32_t address, std::uint16_t port, bool peer_mode);
  ucp_ep_h connect_worker(std::span<const std::byte> address, bool peer_mode);
  /// To the owner, as core would: error mode PEER over tcp, none through memory.
  ucp_ep_h connect_owner();
  ucp_ep_h accept(bool peer_mode);
  ucs_status_ptr_t close(ucp_ep_h ep, bool force, outcome& end, unsigned more_flags = 0);
  /// Waits for the end; false: it did not come within 5 s.
  bool close_and_wait(ucp_ep_h ep, bool force);
  std::size_t worker_address(std::span<std::byte> into);

  // Progress
  unsigned progress();
  template <class Done>
  bool progress_until(Done done, std::int64_t within_ns = 5 * second) {
    const std::int64_t deadline = of.now_ns() + within_ns;
    for (;;) {
      while (!done() && progress() != 0) {
      }
      if (done()) return true;
      if (of.now_ns() >= deadline) return false;
      of.sleep_ns(50'000);
    }
  }
  void progress_for(std::int64_t duration_ns) {
    progress_until([] { return false; }, duration_ns);
  }

  // Operations
  ucs_status_ptr_t get(ucp_ep_h ep, std::byte* to, std::size_t bytes, std::uint64_t from, ucp_rkey_h key, outcome& end,
                       unsigned attributes = 0);
  ucs_status_ptr_t send(ucp_ep_h ep, unsigned id, const void* body, std::size_t bytes, outcome& end, unsigned flags);

  // Memory
  ucp_mem_h map(std::byte* base, std::size_t bytes, ucs_status_t* status = nullptr);
  void unmap(ucp_mem_h handle);
  std::uint32_t pack(ucp_mem_h handle, std::span<std::byte> into);

  void destroy_worker();
  void end();

  bench& of;
  const ucx::ucp_table& ucp;
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  ucp_listener_h listener = nullptr;
  int descriptor = -1;
  std::vector<ucp_conn_request_h> requests;
  ucs_status_t created = UCS_OK;  // of the newest endpoint
  int errors = 0;
  ucs_status_t last_error = UCS_OK;
  int messages = 0;
  bool last_was_descriptor = false;
  ucp_ep_h last_reply = nullptr;
  char last_message[8] = {};
  bool refuse_descriptors = false;
  bool in_progress = false;
  int outside = 0;  // callbacks that ran while nobody called progress

 private:
  ucp_ep_h create(ucp_ep_params_t& params, bool peer_mode);
  ucp_request_param_t callback_to(outcome& end);
  static void called(void* request, ucs_status_t status, void* user);

  std::deque<awaited> awaited_;  // of every operation, also of those that never end
};

/// A process with an endpoint to the owner over which a first GET went, its key, and registered memory.
struct client {
  explicit client(bench& b);
  bool right(std::size_t bytes) const;
  /// Fills the destination with zeros.
  void clear();
  void get(std::size_t bytes, outcome& end);
  bool get_and_wait(std::size_t bytes, ucs_status_t* status = nullptr);
  /// Asks the owner, and waits until it is done; progresses meanwhile.
  void ask(command what);
  /// Ends the connection (by force if the owner is lost) and everything else, the owner included.
  void end(bool owner_lives = true);
  void release_memory();

  bench& of;
  process p;
  ucp_ep_h ep = nullptr;
  ucp_rkey_h key = nullptr;
  std::byte* to = nullptr;
  ucp_mem_h memory = nullptr;
};

}  // namespace holdfast::driver_probe
