// The second process of a probe: offers memory, serves, and does what it is asked.
#include "process.hpp"

#include <array>
#include <optional>

namespace holdfast::driver_probe {

namespace {

/// Beside the owner's own process: as core makes one for lanes through memory.
class mirror {
 public:
  mirror(bench& b, std::byte* to) : p_(b, "posix"), to_(to) {
    for (ucp_ep_h& ep : endpoints_) {
      ep = p_.connect_worker(std::span(b.shared.back_worker).first(b.shared.back_worker_bytes), false);
      require(p_.created == UCS_OK, "no endpoint");
    }
    b.shared.worker_bytes = static_cast<std::uint32_t>(p_.worker_address(b.shared.worker));
  }
  void read(std::size_t through, std::size_t bytes) {
    board& with = p_.of.shared;
    if (keys_[through] == nullptr)
      require(p_.ucp.ucp_ep_rkey_unpack(endpoints_[through], with.back_key.data(), &keys_[through]) == UCS_OK,
              "no key");
    p_.get(endpoints_[through], to_, bytes, with.back_address, keys_[through], reads_.emplace_back());
  }
  void progress() {
    while (p_.progress() != 0) {
    }
    std::uint32_t ended = 0;
    for (const outcome& each : reads_) ended += each.status == UCS_OK ? 1 : 0;
    p_.of.shared.reads.store(ended);
  }
  void end() {
    for (ucp_rkey_h key : keys_)
      if (key != nullptr) p_.ucp.ucp_rkey_destroy(key);
    p_.end();
  }

 private:
  process p_;
  std::byte* to_;
  std::array<ucp_ep_h, 2> endpoints_{};
  std::array<ucp_rkey_h, 2> keys_{};
  std::deque<outcome> reads_;
};

}  // namespace

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
  std::deque<outcome> fetched;
  std::optional<mirror> beside;
  bool rest = false;
  bool reject = false;
  std::uint32_t seen = 0;
  for (bool over = false; !over;) {
    p.refuse_descriptors = with.refuse_descriptors.load() != 0;
    if (!rest) {
      const int before = p.messages;
      while (p.progress() != 0) {
      }
      if (beside) beside->progress();
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
    if (what != command::rest && what != command::read_second) rest = false;
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
        for (unsigned i = 0; i < with.fetches; ++i)
          p.get(back, base + offered_bytes / 2, with.fetch_bytes, with.back_address, back_key, fetched.emplace_back());
        p.progress();
        break;
      case command::reject: reject = true; break;
      case command::mirror:
        other = p.map(base + offered_bytes / 2, offered_bytes / 2);
        beside.emplace(b, base + offered_bytes / 2);
        break;
      case command::read_first: beside->read(0, page); break;
      case command::read_second: beside->read(1, page); break;
      case command::flood:
        for (int i = 0; i < 16; ++i) beside->read(0, 64 * 1024);
        rest = true;
        break;
      case command::stop: over = true; break;
    }
    if (!over) with.done.store(seen);
  }
  for (ucp_ep_h ep : endpoints) p.close_and_wait(ep, true);
  if (beside) beside->end();
  if (memory != nullptr) p.unmap(memory);
  if (other != nullptr) p.unmap(other);
  p.end();
  b.give_back(base, offered_bytes);
  with.done.store(seen);
}

}  // namespace holdfast::driver_probe
