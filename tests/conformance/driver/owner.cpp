// The second process of a probe: offers memory, serves, and does what it is asked.
#include "process.hpp"

namespace holdfast::driver_probe {

void run_owner(bench& b) {
  board& with = b.shared;
  process p(b);
  std::byte* const base = b.pages(offered_bytes);
  for (std::size_t i = 0; i < offered_bytes; ++i) base[i] = pattern(i);
  ucp_mem_h memory = p.map(base, offered_bytes / 2);
  ucp_mem_h other = nullptr;
  with.key_bytes = p.pack(memory, with.key);
  with.address = reinterpret_cast<std::uint64_t>(base);
  require(p.listen() == UCS_OK, "no listener");
  with.port = p.port();
  if (b.over_memory) with.worker_bytes = static_cast<std::uint32_t>(p.worker_address(with.worker));
  with.ready.store(1);

  std::vector<ucp_ep_h> endpoints;
  ucp_ep_h back = nullptr;
  ucp_rkey_h back_key = nullptr;
  outcome fetched;
  bool rest = false;
  bool reject = false;
  std::uint32_t seen = 0;
  for (bool over = false; !over;) {
    p.refuse_descriptors = with.refuse_descriptors.load() != 0;
    if (!rest) {
      const int before = p.messages;
      while (p.progress() != 0) {
      }
      while (!p.requests.empty()) {
        if (reject) {
          b.ucp.ucp_listener_reject(p.listener, p.requests.front());
          p.requests.erase(p.requests.begin());
        } else {
          endpoints.push_back(p.accept(true));
        }
      }
      if (p.messages != before) {
        if (p.last_was_descriptor) ++with.descriptors;
        const bool known = !endpoints.empty() && p.last_reply == endpoints.back();
        if (p.last_reply != nullptr) ++(known ? with.replies_known : with.replies_other);
      }
      with.messages.store(static_cast<std::uint32_t>(p.messages));
      with.errors.store(static_cast<std::uint32_t>(p.errors));
      with.handler_outside.store(static_cast<std::uint32_t>(p.outside));
    }
    const std::uint32_t asked = with.asked.load();
    if (asked == seen) {
      b.sleep_ns(50'000);
      continue;
    }
    seen = asked;
    const command what = with.what.load();
    if (what != command::rest) rest = false;
    switch (what) {
      case command::serve: break;
      case command::rest: rest = true; break;
      case command::unmap:
        p.unmap(memory);
        memory = nullptr;
        break;
      case command::map_again:
        p.unmap(memory);
        memory = p.map(base, offered_bytes / 2);
        with.key_bytes = p.pack(memory, with.key);
        break;
      case command::map_other:
        other = p.map(base + offered_bytes / 2, offered_bytes / 2);
        with.key_bytes = p.pack(other, with.key);
        break;
      case command::send: {
        ucp_ep_h to = endpoints.empty() ? p.last_reply : endpoints.back();
        require(to != nullptr, "no endpoint to send on");
        outcome sent;
        p.send(to, 7, "word", 4, sent, UCP_AM_SEND_FLAG_REPLY);
        p.progress_until([&] { return sent.ended(); }, second);
        break;
      }
      case command::close: {
        require(!endpoints.empty(), "no endpoint to close");
        p.close_and_wait(endpoints.back(), false);
        endpoints.pop_back();
        break;
      }
      case command::call_back: {
        back = b.over_memory ? p.connect_worker(std::span(with.back_worker).first(with.back_worker_bytes), false)
                             : p.connect_socket(b.probe_address(), with.back_port, true);
        outcome sent;
        p.send(back, 7, "back", 4, sent, UCP_AM_SEND_FLAG_REPLY);
        require(p.progress_until([&] { return sent.ended(); }), "a message back did not go");
        require(b.ucp.ucp_ep_rkey_unpack(back, with.back_key.data(), &back_key) == UCS_OK, "no key");
        break;
      }
      case command::fetch:
        p.get(back, base + offered_bytes / 2, 64 * 1024, with.back_address, back_key, fetched);
        p.progress();
        break;
      case command::reject: reject = true; break;
      case command::stop: over = true; break;
    }
    if (!over) with.done.store(seen);
  }
  for (ucp_ep_h ep : endpoints) p.close_and_wait(ep, true);
  if (memory != nullptr) p.unmap(memory);
  if (other != nullptr) p.unmap(other);
  p.end();
  b.give_back(base, offered_bytes);
  with.done.store(seen);
}

}  // namespace holdfast::driver_probe
