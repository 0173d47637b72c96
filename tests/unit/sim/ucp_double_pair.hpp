// Two programs over the double of UCX, for its tests: an owner who serves, and a requester who fetches from it.
#pragma once

#include "ucp_double_process.hpp"

namespace ucp_test {

inline constexpr std::size_t page = 4096;

inline std::byte pattern(std::size_t at) { return static_cast<std::byte>(at * 31 + (at >> 8) * 7 + 5); }

/// Owner: offers `bytes` with a pattern, serves until told to stop. Ends in order.
inline void own(sim::host& machine, board& shared, std::size_t bytes, void (*before_serving)(process&) = nullptr) {
  process p(machine);
  std::byte* const base = p.grant(bytes);
  for (std::size_t i = 0; i < bytes; ++i) base[i] = pattern(i);
  ucp_mem_h memory = p.map(base, bytes);
  require(p.map_status == UCS_OK, "mapped memory");
  p.pack(memory, shared);
  shared.address = reinterpret_cast<std::uint64_t>(base);
  if (before_serving != nullptr) before_serving(p);
  shared.port = p.listen();
  std::vector<ucp_ep_h> endpoints;
  p.progress_until(
      [&] {
        while (!p.requests.empty()) endpoints.push_back(p.accept());
        return shared.stop;
      },
      60'000'000'000);
  for (ucp_ep_h ep : endpoints) p.close_now(ep, true);
  require(ucp().ucp_mem_unmap(p.context, memory) == UCS_OK, "an unmap that answers");
  p.pages().free(base, bytes);
  p.destroy();
}

/// Requester: waits for the owner, connects, unpacks the key, and does `what`.
struct requester {
  process p;
  ucp_ep_h ep = nullptr;
  ucp_rkey_h key = nullptr;
  std::byte* to = nullptr;
  std::size_t bytes;
  ucp_mem_h memory = nullptr;

  requester(sim::host& machine, board& shared, std::size_t size, bool peer_mode = true) : p(machine), bytes(size) {
    while (shared.port == 0) p.sleep(1'000);
    to = p.grant(bytes);
    memory = p.map(to, bytes);
    ep = p.connect(address_a, shared.port, peer_mode);
    key = p.unpack(ep, shared);
  }
  bool right(std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i)
      if (to[i] != pattern(i)) return false;
    return true;
  }
  void release_memory() {
    require(ucp().ucp_mem_unmap(p.context, memory) == UCS_OK, "an unmap that answers");
    p.pages().free(to, bytes);
  }
  void end(bool force = false) {
    ucp().ucp_rkey_destroy(key);
    p.close_now(ep, force);
    release_memory();
    p.destroy();
  }
};

}  // namespace ucp_test
