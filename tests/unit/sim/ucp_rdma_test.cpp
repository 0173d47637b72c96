// The one-sided lane of the double: a silent owner serves, dead keys kill their endpoint, a closed queue pair is a
// fence, ports come back and devices do not.
//
// How: two hosts with the setting `rdma`, programs on fibers as in ucp_double_test. What a fence is, is seen by the
// bytes: the same close over the emulated lane lets them land.
#include "ucp_double_process.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace ucp_test;

constexpr std::size_t page = 4096;
constexpr std::size_t large = 64 * page;
constexpr std::uint64_t seeds = 30;
constexpr std::int64_t second = 1'000'000'000;

std::byte pattern(std::size_t at) { return static_cast<std::byte>(at * 37 + (at >> 8) * 5 + 3); }

struct cards : pair_of_hosts {
  explicit cards(std::uint64_t seed = 1, bool random = false, bool rdma = true) : pair_of_hosts(seed, random) {
    sim::ucp_settings_of(a).rdma = rdma;
    sim::ucp_settings_of(b).rdma = rdma;
  }
};

/// Owner: offers a pattern, accepts, and from stage 2 on does not progress. Stage 3: unmaps its memory.
void own(sim::host& machine, board& shared, std::size_t bytes) {
  process p(machine);
  std::byte* const base = p.grant(bytes);
  for (std::size_t i = 0; i < bytes; ++i) base[i] = pattern(i);
  ucp_mem_h memory = p.map(base, bytes);
  p.pack(memory, shared);
  shared.address = reinterpret_cast<std::uint64_t>(base);
  shared.port = p.listen();
  ucp_ep_h ep = nullptr;
  p.progress_until(
      [&] {
        if (!p.requests.empty()) ep = p.accept();
        return shared.stage >= 2 || shared.stop;
      },
      60 * second);
  while (!shared.stop) {
    if (shared.stage == 3) {
      require(ucp().ucp_mem_unmap(p.context, memory) == UCS_OK, "an unmap that answers");
      memory = nullptr;
      shared.stage = 4;
    }
    if (shared.stage == 5) {
      p.close_now(ep, true);
      ep = nullptr;
      shared.stage = 6;
    }
    p.sleep(10'000);
  }
  if (ep != nullptr) p.close_now(ep, true);
  if (memory != nullptr) require(ucp().ucp_mem_unmap(p.context, memory) == UCS_OK, "an unmap that answers");
  p.destroy();
  p.pages().free(base, bytes);
}

struct reader {
  process p;
  board& shared;
  ucp_ep_h ep = nullptr;
  ucp_rkey_h key = nullptr;
  std::byte* to = nullptr;
  std::size_t bytes;
  ucp_mem_h memory = nullptr;

  reader(sim::host& machine, board& with, std::size_t size) : p(machine), shared(with), bytes(size) {
    while (shared.port == 0) p.sleep(1'000);
    to = p.grant(bytes);
    memory = p.map(to, bytes);
    ep = p.connect(address_a, shared.port);
    outcome hello;
    p.send(ep, "x", 1, hello);
    require(p.progress_until([&] { return hello.status == UCS_OK; }), "a connection");
    key = p.unpack(ep, shared);
    shared.stage = 2;
    p.sleep(1'000'000);
  }
  void get(std::size_t count, outcome& end) { p.get(ep, to, count, shared.address, key, end); }
  bool right(std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i)
      if (to[i] != pattern(i)) return false;
    return true;
  }
  void end() {
    shared.stop = true;
    ucp().ucp_rkey_destroy(key);
    if (ep != nullptr) p.close_now(ep, true);
    require(ucp().ucp_mem_unmap(p.context, memory) == UCS_OK, "an unmap that answers");
    p.destroy();
    p.pages().free(to, bytes);
  }
};

/// Owner and reader in a world; "" or what went wrong.
template <class Body>
std::string meet(cards& hosts, Body body) {
  hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, large); });
  hosts.b.spawn("main", [&] {
    reader r(hosts.b, hosts.shared, large);
    body(r);
    r.end();
  });
  const std::string violated = hosts.run();
  return violated.empty() ? "" : violated + ": " + hosts.sentence();
}

TEST(UcpRdma, ASilentOwnersMemoryIsReadAndOverTheEmulatedLaneItIsNot) {
  for (const bool rdma : {true, false}) {
    cards hosts(1, false, rdma);
    EXPECT_EQ(meet(hosts,
                   [&](reader& r) {
                     outcome got;
                     r.get(large, got);
                     const bool ended = r.p.progress_until([&] { return got.status != UCS_INPROGRESS; }, second);
                     require(ended == rdma, "who needs the owner's progress");
                     if (rdma) require(got.status == UCS_OK && r.right(large), "its bytes");
                     if (!rdma) {
                       outcome closed;
                       ucp_ep_h ep = std::exchange(r.ep, nullptr);
                       r.p.close(ep, true, closed);
                       require(r.p.progress_until(
                                   [&] { return got.status != UCS_INPROGRESS && closed.status != UCS_INPROGRESS; }),
                               "an end");
                     }
                   }),
              "");
  }
}

TEST(UcpRdma, BytesLandBeforeAnybodyProgressesAndTheCompletionWaitsForIt) {
  cards hosts;
  EXPECT_EQ(meet(hosts,
                 [](reader& r) {
                   outcome got;
                   r.get(large, got);
                   r.p.sleep(second / 10);
                   require(r.right(large) && got.calls == 0, "bytes, and no callback");
                   require(r.p.progress_until([&] { return got.calls == 1; }) && got.status == UCS_OK,
                           "then the callback");
                 }),
            "");
}

TEST(UcpRdma, APausedOwnerIsReadToo) {
  cards hosts;
  EXPECT_EQ(meet(hosts,
                 [&](reader& r) {
                   sim::world& w = sim::world::current();
                   w.at(w.now(), [&] { hosts.a.pause(); });
                   r.p.sleep(1'000);
                   outcome got;
                   r.get(page, got);
                   require(r.p.progress_until([&] { return got.calls == 1; }) && got.status == UCS_OK,
                           "served by the card");
                   w.at(w.now(), [&] { hosts.a.resume(); });
                 }),
            "");
}

TEST(UcpRdma, ADeadKeyKillsItsEndpointAndWhatIsOutstandingEndsWithErrors) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    cards hosts(seed, true);
    ASSERT_EQ(meet(hosts,
                   [](reader& r) {
                     r.shared.stage = 3;
                     while (r.shared.stage == 3) r.p.sleep(10'000);
                     outcome one, two;
                     r.get(page, one);
                     r.get(page, two);
                     require(r.p.progress_until([&] { return one.calls + two.calls == 2; }), "both end");
                     require(one.status != UCS_OK && two.status != UCS_OK, "with errors");
                     require(r.p.errors == 1 && r.p.last_error == UCS_ERR_IO_ERROR, "and the endpoint failed, once");
                   }),
              "")
        << seed;
  }
}

TEST(UcpRdma, AnAccessBesideTheRegisteredRangeIsRefused) {
  cards hosts;
  EXPECT_EQ(meet(hosts,
                 [](reader& r) {
                   outcome got;
                   r.p.get(r.ep, r.to, page, r.shared.address + large, r.key, got);
                   require(r.p.progress_until([&] { return got.calls == 1 && r.p.errors == 1; }), "an end");
                   require(got.status != UCS_OK, "with an error");
                 }),
            "");
}

TEST(UcpRdma, AKeyOfAnEarlierRegistrationWithEqualBytesKillsTheEndpoint) {
  unsigned killed = 0, equal_runs = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    cards hosts(seed);
    sim::ucp_settings_of(hosts.a).key_reuse_permille = 1000;
    sim::ucp_settings_of(hosts.b).stale_key_permille = 1000;
    hosts.a.spawn("main", [&] {
      process p(hosts.a);
      std::byte* const base = p.grant(page);
      ucp_mem_h memory = p.map(base, page);
      p.pack(memory, hosts.shared);
      hosts.shared.address = reinterpret_cast<std::uint64_t>(base);
      hosts.shared.port = p.listen();
      ucp_ep_h ep = nullptr;
      p.progress_until([&] {
        if (!p.requests.empty()) ep = p.accept();
        return hosts.shared.stage >= 2;
      });
      const auto before = hosts.shared.key;
      require(ucp().ucp_mem_unmap(p.context, memory) == UCS_OK, "an unmap that answers");
      memory = p.map(base, page);
      p.pack(memory, hosts.shared);
      if (before == hosts.shared.key) ++equal_runs;
      hosts.shared.stage = 3;
      while (!hosts.shared.stop) p.sleep(10'000);
      p.close_now(ep, true);
      require(ucp().ucp_mem_unmap(p.context, memory) == UCS_OK, "an unmap that answers");
      p.destroy();
      p.pages().free(base, page);
    });
    hosts.b.spawn("main", [&] {
      reader r(hosts.b, hosts.shared, page);
      while (hosts.shared.stage != 3) r.p.sleep(10'000);
      outcome got;
      r.get(page, got);
      require(r.p.progress_until([&] { return got.calls == 1; }), "an end");
      if (r.p.errors == 1 && got.status != UCS_OK) ++killed;
      r.end();
    });
    ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " seed " << seed;
  }
  EXPECT_EQ(equal_runs, seeds);
  EXPECT_EQ(killed, seeds);
}

TEST(UcpRdma, AClosedQueuePairIsAFence) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    cards hosts(seed);
    ASSERT_EQ(meet(hosts,
                   [seed](reader& r) {
                     outcome got, closed;
                     r.get(large, got);
                     r.p.sleep(20'000 + static_cast<std::int64_t>(seed) * 5'000);
                     ucp_ep_h ep = std::exchange(r.ep, nullptr);
                     r.p.close(ep, true, closed);
                     // Whatever landed by now: from here on nothing does.
                     std::memset(r.to, 0, large);
                     r.p.sleep(second / 10);
                     for (std::size_t i = 0; i < large; ++i) require(r.to[i] == std::byte{0}, "a byte after the fence");
                     require(r.p.progress_until([&] { return got.calls == 1 && closed.status != UCS_INPROGRESS; }),
                             "an end");
                   }),
              "")
        << seed;
  }
}

TEST(UcpRdma, TheOwnersCloseEndsItsPeersAccess) {
  cards hosts;
  EXPECT_EQ(meet(hosts,
                 [](reader& r) {
                   r.shared.stage = 5;
                   while (r.shared.stage == 5) r.p.sleep(10'000);
                   outcome got;
                   r.get(page, got);
                   require(r.p.progress_until([&] { return got.status != UCS_INPROGRESS; }, 5 * second), "an end");
                   require(got.status != UCS_OK && !r.right(page), "without the bytes");
                 }),
            "");
}

TEST(UcpRdma, APortThatComesBackEndsNothingAndOneThatStaysDownKillsTheQueuePair) {
  for (const bool back : {true, false}) {
    cards hosts;
    EXPECT_EQ(meet(hosts,
                   [&](reader& r) {
                     sim::world& w = sim::world::current();
                     w.at(w.now(), [&] { sim::nic_of(hosts.a).set_port(false); });
                     r.p.sleep(1'000);
                     outcome got;
                     r.get(page, got);
                     r.p.sleep(second / 10);
                     require(got.calls == 0 && !r.right(page), "nothing moves");
                     if (back) w.at(w.now(), [&] { sim::nic_of(hosts.a).set_port(true); });
                     require(r.p.progress_until([&] { return got.calls == 1; }, 5 * second), "an end");
                     require((got.status == UCS_OK) == back && r.p.errors == (back ? 0 : 1),
                             "which depends on the port");
                   }),
              "");
  }
}

TEST(UcpRdma, AFailedDeviceFlushesItsWorkRefusesRegistrationsAndHoldsPagesUntilTheContextIsClosed) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    cards hosts(seed, true);
    bool pinned_before = false;
    bool pinned_after = true;
    hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, large); });
    hosts.b.spawn("main", [&] {
      reader r(hosts.b, hosts.shared, large);
      sim::world& w = sim::world::current();
      outcome got;
      r.get(large, got);
      w.at(w.now() + 25'000, [&] { sim::nic_of(hosts.b).fail(); });
      require(r.p.progress_until([&] { return got.calls == 1; }), "flushed");
      r.p.sleep(1'000'000);
      std::byte* const more = r.p.grant(page);
      r.p.map(more, page);
      require(r.p.map_status == UCS_ERR_IO_ERROR, "no registration on a dead device");
      r.p.pages().free(more, page);
      hosts.shared.stop = true;
      ucp().ucp_rkey_destroy(r.key);
      r.p.close_now(r.ep, true);
      require(ucp().ucp_mem_unmap(r.p.context, r.memory) == UCS_OK, "an unmap that answers");
      pinned_before = sim::memory_of(hosts.b).held_pins() != 0;
      r.p.destroy();
      pinned_after = sim::memory_of(hosts.b).held_pins() != 0;
      r.p.pages().free(r.to, large);
    });
    ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " seed " << seed;
    EXPECT_TRUE(pinned_before);
    EXPECT_FALSE(pinned_after);
  }
}

TEST(UcpRdma, DevicesFailAndPortsGoDownAsPlanned) {
  for (const char* const how : {"fatal", "port_down"}) {
    cards hosts;
    hosts.plan({{"nic.device", "b", 1, 1, how, 10'000'000}});
    EXPECT_EQ(meet(hosts,
                   [&](reader& r) {
                     outcome got;
                     r.get(page, got);
                     require(r.p.progress_until([&] { return got.calls == 1; }, 5 * second), "an end");
                     require((got.status == UCS_OK) == (std::string_view(how) == "port_down"), "as planned");
                   }),
              "")
        << how;
  }
}

TEST(UcpRdma, ItIsOffByDefault) {
  pair_of_hosts hosts;
  EXPECT_FALSE(sim::ucp_settings_of(hosts.a).rdma);
  hosts.run();
}

}  // namespace
