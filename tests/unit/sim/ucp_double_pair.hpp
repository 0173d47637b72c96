// Two programs over the double of UCX, for its tests: an owner who serves, and a requester who fetches from it.
#pragma once

#include "ucp_double_process.hpp"

namespace ucp_test {

inline constexpr std::size_t page = 4096;

inline std::byte pattern(std::size_t at) { return static_cast<std::byte>(at * 31 + (at >> 8) * 7 + 5); }

/// A program whose memory others may read: `bytes` with the pattern, whose key and address it writes on the board.
struct owner {
  process p;
  std::byte* const base;
  const std::size_t bytes;
  ucp_mem_h memory;

  owner(sim::host& machine, board& shared, std::size_t size) : p(machine), base(p.grant(size)), bytes(size) {
    for (std::size_t i = 0; i < bytes; ++i) base[i] = pattern(i);
    memory = p.map(base, bytes);
    require(p.map_status == UCS_OK, "mapped memory");
    p.pack(memory, shared);
    shared.address = reinterpret_cast<std::uint64_t>(base);
  }
  /// Its endpoints must be gone.
  void end() {
    require(ucp().ucp_mem_unmap(p.context, memory) == UCS_OK, "an unmap that answers");
    p.pages().free(base, bytes);
    p.destroy();
  }
};

/// An owner with a listener, who serves until told to stop. Ends in order.
inline void own(sim::host& machine, board& shared, std::size_t bytes, void (*before_serving)(process&) = nullptr) {
  owner o(machine, shared, bytes);
  if (before_serving != nullptr) before_serving(o.p);
  shared.port = o.p.listen();
  std::vector<ucp_ep_h> endpoints;
  o.p.progress_until(
      [&] {
        while (!o.p.requests.empty()) endpoints.push_back(o.p.accept());
        return shared.stop;
      },
      60'000'000'000);
  for (ucp_ep_h ep : endpoints) o.p.close_now(ep, true);
  o.end();
}

/// A program that waits for an owner and fetches into memory of its own. How it connects is said by who derives.
struct fetcher {
  process p;
  const board& shared;
  ucp_ep_h ep = nullptr;
  ucp_rkey_h key = nullptr;
  std::byte* to = nullptr;
  std::size_t bytes;
  ucp_mem_h memory = nullptr;

  template <class There>
  fetcher(sim::host& machine, const board& from, std::size_t size, There there)
      : p(machine), shared(from), bytes(size) {
    while (!there()) p.sleep(1'000);
    to = p.grant(bytes);
    memory = p.map(to, bytes);
  }
  ucs_status_ptr_t get(std::size_t count, outcome& ended) { return p.get(ep, to, count, shared.address, key, ended); }
  /// A GET whose success must come.
  void fetch(std::size_t count, const char* sentence) {
    outcome got;
    get(count, got);
    require(p.progress_until([&] { return got.status == UCS_OK; }), sentence);
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

/// Connects to the owner's listener, and unpacks its key.
struct requester : fetcher {
  requester(sim::host& machine, const board& from, std::size_t size, bool peer_mode = true)
      : fetcher(machine, from, size, [&] { return from.port != 0; }) {
    ep = p.connect(address_a, shared.port, peer_mode);
    key = p.unpack(ep, shared);
  }
};

}  // namespace ucp_test
