// Through the memory of a machine the double behaves as UCX 1.13.1 over posix and cma (spec/transport F6 to F10, F14):
// GETs that the owner's progress serves, and nobody who is told of a death.
//
// How: two processes on one machine (hosts that were placed together), the requester with the owner's worker address
// and an endpoint without error mode. What a test says of all runs it says over many seeds with the random strategy.
#include "ucp_double_pair.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace {

using namespace ucp_test;

constexpr std::uint64_t seeds = 40;
constexpr std::int64_t second = 1'000'000'000;

struct neighbors : pair_of_hosts {
  explicit neighbors(std::uint64_t seed = 1, bool random = false) : pair_of_hosts(seed, random) {
    fabric().place(b, fabric().machine_of(a));
  }
};

/// From now on it can be reached at the address of its worker.
void tell_address(owner& o, board& shared) {
  shared.worker = o.p.worker_address();
  shared.stage = 1;
}

/// An owner who serves until told to stop.
void serve(sim::host& machine, board& shared, std::size_t bytes) {
  owner o(machine, shared, bytes);
  tell_address(o, shared);
  o.p.progress_until([&] { return shared.stop; }, 60 * second);
  o.end();
}

/// Connects to the address of the owner's worker, and unpacks its key.
struct neighbor : fetcher {
  neighbor(sim::host& machine, const board& from, std::size_t size, bool peer_mode = false)
      : fetcher(machine, from, size, [&] { return from.stage != 0; }) {
    ep = p.connect_to(shared.worker, peer_mode);
    require(p.create_status == UCS_OK, "an endpoint to an address");
    key = p.unpack(ep, shared);
  }
};

TEST(UcpSharedMemory, AGetBringsEveryByteInlineOrPosted) {
  bool seen[2] = {};  // inline, posted
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    neighbors hosts(seed, true);
    hosts.a.spawn("main", [&] { serve(hosts.a, hosts.shared, 16 * page); });
    hosts.b.spawn("main", [&] {
      neighbor r(hosts.b, hosts.shared, 16 * page);
      for (const std::size_t size : {std::size_t{64}, std::size_t{64}, std::size_t{200}, page, 16 * page}) {
        outcome got;
        seen[UCS_PTR_IS_PTR(r.get(size, got))] = true;
        require(r.p.progress_until([&] { return got.status != UCS_INPROGRESS; }), "an end");
        require(got.status == UCS_OK && r.right(size), "the owner's bytes");
      }
      r.end();
      hosts.shared.stop = true;
    });
    ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " seed " << seed;
  }
  EXPECT_TRUE(seen[0] && seen[1]);
}

TEST(UcpSharedMemory, WithoutTheOwnersProgressNothingIsServed) {
  neighbors hosts;
  hosts.a.spawn("main", [&] {
    owner o(hosts.a, hosts.shared, page);
    tell_address(o, hosts.shared);
    o.p.sleep(50'000'000);
    hosts.shared.stage = 2;
    o.p.progress_until([&] { return hosts.shared.stop; }, 10 * second);
    o.end();
  });
  hosts.b.spawn("main", [&] {
    neighbor r(hosts.b, hosts.shared, page);
    outcome got;
    r.get(page, got);
    require(!r.p.progress_until([&] { return got.status != UCS_INPROGRESS || hosts.shared.stage == 2; }, 40'000'000),
            "a quiet owner serves nothing");
    require(r.p.progress_until([&] { return got.status != UCS_INPROGRESS; }), "one that progresses does");
    r.end();
    hosts.shared.stop = true;
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpSharedMemory, APeersDeathIsNeverReportedAndNeitherItsGetNorItsFlushedCloseEnds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    neighbors hosts(seed, true);
    hosts.a.spawn("main", [&] { serve(hosts.a, hosts.shared, page); });
    hosts.b.spawn("main", [&] {
      neighbor r(hosts.b, hosts.shared, page);
      r.fetch(page, "a first GET");
      sim::world& w = sim::world::current();
      w.at(w.now(), [&] { hosts.a.crash(); });
      r.p.sleep(1'000);
      outcome got, closed;
      r.get(page, got);
      r.p.progress_for(30 * second);
      require(got.status == UCS_INPROGRESS && r.p.errors == 0, "nobody is told");
      const auto close = r.p.close(r.ep, false, closed);
      r.p.progress_for(30 * second);
      require(closed.status == UCS_INPROGRESS, "a flush that waits for the dead");
      ucp().ucp_request_free(close);
      // Returns, and calls nobody back (F10).
      ucp().ucp_worker_destroy(r.p.worker);
      require(got.calls == 0 && closed.calls == 0, "no callback from the destruction");
      r.release_memory();
      ucp().ucp_cleanup(r.p.context);
    });
    ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " seed " << seed;
  }
}

TEST(UcpSharedMemory, AStoppedPeersGetEndsWhenItGoesOn) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    neighbors hosts(seed, true);
    hosts.a.spawn("main", [&] { serve(hosts.a, hosts.shared, page); });
    hosts.b.spawn("main", [&] {
      neighbor r(hosts.b, hosts.shared, page);
      r.fetch(page, "a first GET");
      sim::world& w = sim::world::current();
      w.at(w.now(), [&] { hosts.a.pause(); });
      r.p.sleep(1'000);
      outcome got;
      r.get(page, got);
      require(!r.p.progress_until([&] { return got.status != UCS_INPROGRESS; }, 15 * second), "stopped, not served");
      require(r.p.errors == 0, "and not reported");
      w.at(w.now(), [&] { hosts.a.resume(); });
      require(r.p.progress_until([&] { return got.status != UCS_INPROGRESS; }, 15 * second), "goes on");
      require(got.status == UCS_OK && r.right(page), "with the bytes");
      r.end();
      hosts.shared.stop = true;
    });
    ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " seed " << seed;
  }
}

TEST(UcpSharedMemory, AForcedCloseIsRefusedAndTheEndpointWorksOn) {
  neighbors hosts;
  hosts.a.spawn("main", [&] { serve(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    neighbor r(hosts.b, hosts.shared, page);
    outcome closed, got;
    r.p.close(r.ep, true, closed);
    require(closed.status == UCS_ERR_INVALID_PARAM, "refused");
    r.get(page, got);
    require(r.p.progress_until([&] { return got.status != UCS_INPROGRESS; }), "an end");
    require(got.status == UCS_OK && r.right(page), "as if nobody had asked");
    r.end();
    hosts.shared.stop = true;
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpSharedMemory, ErrorModePeerTakesTcpSoThatADeathIsReported) {
  neighbors hosts;
  hosts.a.spawn("main", [&] { serve(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    neighbor r(hosts.b, hosts.shared, page, true);
    r.fetch(page, "a GET over tcp");
    sim::world& w = sim::world::current();
    w.at(w.now(), [&] { hosts.a.crash(); });
    outcome lost;
    r.p.sleep(1'000);
    r.get(page, lost);
    require(r.p.progress_until([&] { return r.p.errors == 1 && lost.status != UCS_INPROGRESS; }), "told, and ended");
    require(lost.status != UCS_OK, "with an error");
    r.end(true);
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpSharedMemory, APartitionCutsTcpAndNotTheMemoryOfAMachine) {
  neighbors hosts;
  hosts.fabric().partition(hosts.a, hosts.b);
  hosts.a.spawn("main", [&] { serve(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    neighbor r(hosts.b, hosts.shared, page);
    r.fetch(page, "memory needs no network");
    r.end();
    hosts.shared.stop = true;
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpSharedMemory, BetweenMachinesAnAddressMeansTcpAndWithoutTcpNothing) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] { serve(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    neighbor r(hosts.b, hosts.shared, page);
    r.fetch(page, "a GET over tcp");
    r.end();
    process only(hosts.b, UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP | UCP_FEATURE_AM, "posix,cma,self");
    only.connect_to(hosts.shared.worker);
    require(only.create_status == UCS_ERR_UNREACHABLE, "no lane");
    only.destroy();
    hosts.shared.stop = true;
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpSharedMemory, AnAddressOfAnEndedLifeIsRefusedOrItsEndpointHangs) {
  unsigned made = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    neighbors hosts(seed, true);
    hosts.a.spawn("main", [&] { serve(hosts.a, hosts.shared, page); });
    hosts.b.spawn("main", [&] {
      process p(hosts.b);
      while (hosts.shared.stage == 0) p.sleep(1'000);
      sim::world& w = sim::world::current();
      w.at(w.now(), [&] {
        hosts.a.crash();
        hosts.a.restart();
        // The next life's worker has the same number, and another address.
        hosts.a.spawn("main", [&] { serve(hosts.a, hosts.shared, page); });
      });
      const auto old = hosts.shared.worker;
      hosts.shared.stage = 0;
      p.sleep(1'000);
      while (hosts.shared.stage == 0) p.sleep(1'000);
      ucp_ep_h ep = p.connect_to(old);
      if (p.create_status == UCS_OK) ++made;
      if (p.create_status == UCS_ERR_SHMEM_SEGMENT) ++refused;
      if (p.create_status == UCS_OK) {
        outcome sent;
        p.send(ep, "hello", 5, sent);
        p.progress_for(5 * second);
        require(sent.status == UCS_INPROGRESS && p.errors == 0, "nobody is behind it");
        outcome closed;
        ucp().ucp_request_free(p.close(ep, false, closed));
      }
      hosts.shared.stop = true;
      p.destroy();
    });
    ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " seed " << seed;
  }
  EXPECT_TRUE(made > 0 && refused > 0 && made + refused == seeds) << made << ' ' << refused;
}

TEST(UcpSharedMemory, AnAddressThatIsNoneIsRefusedAndOneThatIsReleasedTwiceIsReported) {
  neighbors hosts;
  hosts.a.spawn("main", [&] {
    process p(hosts.a);
    auto bad = p.worker_address();
    bad[28] ^= std::byte{1};
    p.connect_to(bad);
    require(p.create_status == UCS_ERR_INVALID_ADDR, "not an address");
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    require(ucp().ucp_worker_get_address(p.worker, &address, &bytes) == UCS_OK, "an address");
    ucp().ucp_worker_release_address(p.worker, address);
    ucp().ucp_worker_release_address(p.worker, address);
  });
  EXPECT_EQ(hosts.run(), "driver misuse: no such handle");
}

TEST(UcpSharedMemory, ThereIsAFaultForAnAddressThatIsRefused) {
  neighbors hosts;
  hosts.plan({{"ucp.worker.address", "a", 1, 1, "error", 0}});
  hosts.a.spawn("main", [&] {
    process p(hosts.a);
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    require(ucp().ucp_worker_get_address(p.worker, &address, &bytes) == UCS_ERR_NO_MEMORY, "refused");
    require(ucp().ucp_worker_get_address(p.worker, &address, &bytes) == UCS_OK, "once");
    ucp().ucp_worker_release_address(p.worker, address);
    p.destroy();
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

// Keys --------------------------------------------------------------------------------------------------------

TEST(UcpKeys, BytesOfAKeyThatIsGoneAreGivenOutAgainInSomeRunsAndInOthersNot) {
  bool seen[2] = {};  // different, equal
  bool empty = false;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    pair_of_hosts hosts(seed);
    hosts.a.spawn("main", [&] {
      process p(hosts.a);
      std::byte* const base = p.grant(2 * page);
      board first, second_key, other;
      ucp_mem_h one = p.map(base, page);
      p.pack(one, first);
      ucp_mem_h two = p.map(base + page, page);
      p.pack(two, other);
      require(ucp().ucp_mem_unmap(p.context, one) == UCS_OK, "an unmap that answers");
      one = p.map(base, page);
      p.pack(one, second_key);
      if (first.key != other.key)
        seen[first.key == second_key.key] = true;
      else
        empty = true;
      require(ucp().ucp_mem_unmap(p.context, one) == UCS_OK, "an unmap that answers");
      require(ucp().ucp_mem_unmap(p.context, two) == UCS_OK, "an unmap that answers");
      p.pages().free(base, 2 * page);
      p.destroy();
    });
    ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " seed " << seed;
  }
  EXPECT_TRUE(seen[0] && seen[1]);
  EXPECT_TRUE(empty) << "in some runs keys say nothing, and two that live are equal";
}

TEST(UcpKeys, ARestartedProcessGivesOutTheKeysOfItsEarlierLife) {
  pair_of_hosts hosts;
  board before, after;
  sim::ucp_settings_of(hosts.a).key_reuse_permille = 1000;
  sim::ucp_settings_of(hosts.a).key_empty_permille = 0;
  const auto offer = [&](board& to) {
    process p(hosts.a);
    std::byte* const base = p.grant(page);
    p.pack(p.map(base, page), to);
    to.stage = 1;
    p.sleep(second);
  };
  hosts.a.spawn("main", [&] { offer(before); });
  hosts.world.at(second / 2, [&] {
    hosts.a.crash();
    hosts.a.restart();
    hosts.a.spawn("main", [&] {
      offer(after);
      hosts.world.at(hosts.world.now(), [&] { hosts.a.crash(); });
      sim::world::current().block(sim::op_kind::sleep, 0, 10 * second);
    });
  });
  ASSERT_EQ(hosts.run(), "") << hosts.sentence();
  EXPECT_EQ(before.stage + after.stage, 2);
  EXPECT_EQ(before.key, after.key);
}

TEST(UcpKeys, AKeyThatIsKeptByItsBytesAloneReadsWhatIsNotThere) {
  // A cache that finds the key of the first registration for the second: in some runs the bytes are wrong.
  unsigned stale = 0, wrong = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    neighbors hosts(seed);
    sim::ucp_settings_of(hosts.a).key_empty_permille = 0;
    bool equal = false;
    hosts.a.spawn("main", [&] {
      owner o(hosts.a, hosts.shared, page);
      tell_address(o, hosts.shared);
      o.p.progress_until([&] { return hosts.shared.stage == 2; });
      const auto before = hosts.shared.key;
      require(ucp().ucp_mem_unmap(o.p.context, o.memory) == UCS_OK, "an unmap that answers");
      o.memory = o.p.map(o.base, page);
      o.p.pack(o.memory, hosts.shared);
      equal = before == hosts.shared.key;
      hosts.shared.stage = 3;
      o.p.progress_until([&] { return hosts.shared.stop; });
      o.end();
    });
    hosts.b.spawn("main", [&] {
      neighbor r(hosts.b, hosts.shared, page);
      r.fetch(page, "a first GET");
      // Unpacked before the connection stood: of such a key nobody knows whose it is.
      ucp().ucp_rkey_destroy(r.key);
      r.key = r.p.unpack(r.ep, hosts.shared);
      hosts.shared.stage = 2;
      require(r.p.progress_until([&] { return hosts.shared.stage == 3; }), "another registration");
      std::memset(r.to, 0, page);
      r.fetch(page, "a second GET");
      if (equal) ++stale;
      if (!r.right(page)) ++wrong;
      require(equal || r.right(page), "only equal bytes deceive");
      ucp_rkey_h fresh = r.p.unpack(r.ep, hosts.shared);
      outcome got;
      r.p.get(r.ep, r.to, page, hosts.shared.address, fresh, got);
      require(r.p.progress_until([&] { return got.status == UCS_OK; }) && r.right(page), "the fresh key is right");
      ucp().ucp_rkey_destroy(fresh);
      r.end();
      hosts.shared.stop = true;
    });
    ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " seed " << seed;
  }
  EXPECT_GT(stale, 0u);
  EXPECT_GT(wrong, 0u);
  EXPECT_LT(wrong, stale);
}

TEST(UcpSharedMemory, AReadThatNamesAnEndpointWhichItsOwnerClosedIsReported) {
  // The peer's reads name the owner's endpoint towards it, by its address.
  for (const bool closes : {false, true}) {
    neighbors hosts;
    std::array<std::byte, 256> back{};
    hosts.a.spawn("main", [&] {
      owner o(hosts.a, hosts.shared, page);
      tell_address(o, hosts.shared);
      require(o.p.progress_until([&] { return hosts.shared.stage == 2; }, 60 * second), "a requester");
      ucp_ep_h towards = o.p.connect_to(back);
      if (closes) o.p.close_now(towards, false);
      hosts.shared.stage = 3;
      o.p.progress_until([&] { return hosts.shared.stop; }, 60 * second);
      if (!closes) o.p.close_now(towards, false);
      o.end();
    });
    hosts.b.spawn("main", [&] {
      neighbor r(hosts.b, hosts.shared, page);
      back = r.p.worker_address();
      hosts.shared.stage = 2;
      require(r.p.progress_until([&] { return hosts.shared.stage == 3; }, 60 * second),
              "an owner that knows the requester");
      outcome got;
      r.get(page, got);
      r.p.progress_until([&] { return got.status != UCS_INPROGRESS; });
      hosts.shared.stop = true;
      // The owner closes its end when no read is on its way any more.
      r.p.progress_until([] { return false; }, second / 10);
      r.end();
    });
    EXPECT_EQ(hosts.run(), closes ? "driver misuse: use after close" : "");
  }
}

}  // namespace
