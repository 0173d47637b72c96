// The double of UCX behaves as the real library does where core depends on it (spec/transport, facts F1 to F30).
//
// How: two hosts, each with a small program that drives the table of functions from a fiber. Programs report through
// the world; the test looks at the violation, or that there is none. Where the double may behave in several ways, a
// test runs over many seeds with the random strategy.
#include "ucp_double_pair.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

namespace {

using namespace ucp_test;

constexpr std::uint64_t seeds = 60;

TEST(UcpDouble, AHelloSentBeforeTheConnectionIsAcceptedArrivesAndNamesItsReplyEndpoint) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    pair_of_hosts hosts(seed, true);
    hosts.a.spawn("main", [&] {
      process p(hosts.a);
      hosts.shared.port = p.listen(5123);
      ucp_ep_h ep = nullptr;
      require(p.progress_until([&] {
        if (!p.requests.empty()) ep = p.accept();
        return !p.messages.empty();
      }),
              "a message");
      require(p.messages[0] == "hello", "its bytes");
      require(p.last_reply == ep && ep != nullptr, "the endpoint to answer on");
      outcome sent;
      p.send(ep, "welcome", 7, sent);
      require(p.progress_until([&] { return sent.status != UCS_INPROGRESS && p.errors == 1; }), "a peer that leaves");
      require(p.last_error == UCS_ERR_CONNECTION_RESET, "and is reported as gone");
      p.close_now(ep, true);
      p.destroy();
    });
    hosts.b.spawn("main", [&] {
      process p(hosts.b);
      while (hosts.shared.port == 0) p.sleep(1'000);
      ucp_ep_h ep = p.connect(address_a, hosts.shared.port);
      outcome sent;
      const auto answer = p.send(ep, "hello", 5, sent);
      require(UCS_PTR_IS_PTR(answer), "nothing leaves before the connection stands");
      require(p.progress_until([&] { return !p.messages.empty(); }), "an answer");
      require(p.messages[0] == "welcome" && sent.calls == 1 && sent.status == UCS_OK, "both ways");
      p.close_now(ep, false);
      require(p.errors == 0, "no error handler after a local close");
      p.destroy();
    });
    ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " seed " << seed;
  }
}

TEST(UcpDouble, AGetBringsEveryByteAndIsToldOnce) {
  for (const std::size_t bytes : {std::size_t{64}, 2 * page, std::size_t{1} << 20}) {
    for (std::uint64_t seed = 1; seed <= seeds / 3; ++seed) {
      pair_of_hosts hosts(seed, true);
      const std::size_t whole = (bytes + page - 1) / page * page;
      hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, whole); });
      hosts.b.spawn("main", [&] {
        requester r(hosts.b, hosts.shared, whole);
        outcome got;
        const auto answer = r.p.get(r.ep, r.to, bytes, hosts.shared.address, r.key, got);
        require(!UCS_PTR_IS_ERR(answer), "an accepted GET");
        require(r.p.progress_until([&] { return got.status != UCS_INPROGRESS; }), "an end");
        require(got.status == UCS_OK && r.right(bytes), "every byte, when it is told");
        require(got.calls == (answer == nullptr ? 0 : 1), "a callback for a request and only then");
        r.end();
        hosts.shared.stop = true;
      });
      ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " seed " << seed << " bytes " << bytes;
    }
  }
}

TEST(UcpDouble, AnOwnerThatDoesNotProgressServesNothing) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page, nullptr); });
  hosts.b.spawn("main", [&] {
    requester r(hosts.b, hosts.shared, page);
    outcome hello;
    r.p.send(r.ep, "x", 1, hello);
    require(r.p.progress_until([&] { return hello.status == UCS_OK; }), "a connection");
    hosts.a.pause();
    outcome got;
    require(UCS_PTR_IS_PTR(r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, got)), "a posted GET");
    require(!r.p.progress_until([&] { return got.status != UCS_INPROGRESS; }, 30'000'000'000),
            "nothing for half a minute");
    require(r.p.errors == 0, "a stopped peer is not reported");
    hosts.a.resume();
    require(r.p.progress_until([&] { return got.status == UCS_OK; }) && r.right(page), "then it goes on");
    r.end();
    hosts.shared.stop = true;
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpDouble, AKilledPeerIsReportedOnceThenItsOutstandingGetsEndWithAnError) {
  std::set<int> statuses;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    pair_of_hosts hosts(seed, true);
    ucs_status_t seen = UCS_OK;
    hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page); });
    hosts.b.spawn("main", [&] {
      requester r(hosts.b, hosts.shared, page);
      outcome hello;
      r.p.send(r.ep, "x", 1, hello);
      require(r.p.progress_until([&] { return hello.status == UCS_OK; }), "a connection");
      hosts.a.pause();
      outcome got[3];
      for (outcome& each : got) {
        require(UCS_PTR_IS_PTR(r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, each)), "a posted GET");
      }
      hosts.a.crash();
      const std::int64_t killed = now();
      require(r.p.progress_until([&] { return r.p.errors != 0; }, 50'000'000), "a report in tens of milliseconds");
      require(now() - killed >= 17'000'000, "and not at once");
      require(r.p.progress_until([&] { return got[0].calls + got[1].calls + got[2].calls == 3; }), "three ends");
      for (const outcome& each : got) require(each.status == r.p.last_error, "with the status of the endpoint");
      outcome late;
      const auto refused = r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, late);
      require(UCS_PTR_IS_ERR(refused), "a failed endpoint takes nothing new");
      require(r.p.errors == 1, "one report");
      seen = r.p.last_error;
      r.end(true);
    });
    ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " seed " << seed;
    statuses.insert(seen);
  }
  EXPECT_EQ(statuses, (std::set<int>{UCS_ERR_ENDPOINT_TIMEOUT, UCS_ERR_CONNECTION_RESET}));
}

TEST(UcpDouble, AForcedCloseReturnsFirstAndItsOperationsEndAsCanceledFromLaterProgress) {
  std::size_t late_bytes = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    pair_of_hosts hosts(seed, true);
    hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, 64 * page); });
    hosts.b.spawn("main", [&] {
      requester r(hosts.b, hosts.shared, 64 * page);
      outcome got;
      require(UCS_PTR_IS_PTR(r.p.get(r.ep, r.to, 64 * page, hosts.shared.address, r.key, got)), "a posted GET");
      r.p.progress_for(static_cast<std::int64_t>(50'000 + seed * 2'000));
      if (got.status == UCS_INPROGRESS) {
        const auto zeros = std::count(r.to, r.to + r.bytes, std::byte{0});
        outcome closed;
        const auto answer = r.p.close(r.ep, true, closed);
        require(!UCS_PTR_IS_ERR(answer), "a close that is taken");
        require(got.calls == 0, "the close returns before the operation ends");
        require(r.p.progress_until([&] { return got.calls == 1; }), "the end comes later");
        require(got.status == UCS_ERR_CANCELED, "as canceled");
        late_bytes += static_cast<std::size_t>(zeros - std::count(r.to, r.to + r.bytes, std::byte{0}));
        require(r.p.progress_until([&] { return closed.status != UCS_INPROGRESS; }), "the close is over too");
        ucp().ucp_rkey_destroy(r.key);
      } else {
        ucp().ucp_rkey_destroy(r.key);
        r.p.close_now(r.ep, true);
      }
      r.release_memory();
      r.p.destroy();
      hosts.shared.stop = true;
    });
    ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " seed " << seed;
  }
  EXPECT_GT(late_bytes, 0u) << "no run showed that the return of a close is no fence";
}

TEST(UcpDouble, AForcedCloseWithoutErrorModeIsRefusedBeforeAnythingIsTouched) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    requester r(hosts.b, hosts.shared, page, false);
    outcome closed;
    const auto answer = r.p.close(r.ep, true, closed);
    require(UCS_PTR_IS_ERR(answer) && closed.status == UCS_ERR_INVALID_PARAM, "a refusal");
    outcome got;
    r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, got);
    require(r.p.progress_until([&] { return got.status == UCS_OK; }) && r.right(page), "the endpoint works on");
    r.end();
    hosts.shared.stop = true;
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpDouble, WithoutErrorModeADeadPeerIsNeverReportedAndNothingEnds) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    requester r(hosts.b, hosts.shared, page, false);
    outcome hello;
    r.p.send(r.ep, "x", 1, hello);
    require(r.p.progress_until([&] { return hello.status == UCS_OK; }), "a connection");
    hosts.a.pause();
    outcome got;
    require(UCS_PTR_IS_PTR(r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, got)), "a posted GET");
    hosts.a.crash();
    r.p.progress_for(10'000'000'000);
    require(r.p.errors == 0 && got.calls == 0, "silence");
    // Only the worker's end ends it, and without a callback; the key that it uses goes with it.
    ucp().ucp_worker_destroy(r.p.worker);
    require(got.calls == 0, "no callback");
    r.release_memory();
    ucp().ucp_cleanup(r.p.context);
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpDouble, AFlushedCloseWaitsForWhatIsOutstanding) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    pair_of_hosts hosts(seed, true);
    hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, 16 * page); });
    hosts.b.spawn("main", [&] {
      requester r(hosts.b, hosts.shared, 16 * page);
      outcome got;
      r.p.get(r.ep, r.to, 16 * page, hosts.shared.address, r.key, got);
      outcome closed;
      const auto answer = r.p.close(r.ep, false, closed);
      require(UCS_PTR_IS_PTR(answer), "it takes a while");
      require(r.p.progress_until([&] { return closed.status != UCS_INPROGRESS; }), "it ends");
      require(closed.status == UCS_OK && got.calls == 1 && got.status == UCS_OK && r.right(16 * page), "after the GET");
      ucp().ucp_rkey_destroy(r.key);
      r.release_memory();
      r.p.destroy();
      hosts.shared.stop = true;
    });
    ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " seed " << seed;
  }
}

TEST(UcpDouble, AFlushedCloseTowardsAStoppedPeerDoesNotEnd) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    requester r(hosts.b, hosts.shared, page);
    outcome hello;
    r.p.send(r.ep, "x", 1, hello);
    require(r.p.progress_until([&] { return hello.status == UCS_OK; }), "a connection");
    hosts.a.pause();
    ucp().ucp_rkey_destroy(r.key);
    outcome closed;
    require(UCS_PTR_IS_PTR(r.p.close(r.ep, false, closed)), "a close that takes a while");
    require(!r.p.progress_until([&] { return closed.calls != 0; }, 60'000'000'000), "a minute is not enough");
    hosts.a.resume();
    require(r.p.progress_until([&] { return closed.calls == 1; }), "it goes on with the peer");
    r.release_memory();
    r.p.destroy();
    hosts.shared.stop = true;
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpDouble, ADestroyedWorkerEndsItsOperationsWithoutCallingBack) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    pair_of_hosts hosts(seed, true);
    hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, 64 * page); });
    hosts.b.spawn("main", [&] {
      requester r(hosts.b, hosts.shared, 64 * page);
      outcome got;
      require(UCS_PTR_IS_PTR(r.p.get(r.ep, r.to, 64 * page, hosts.shared.address, r.key, got)), "a posted GET");
      r.p.progress_for(static_cast<std::int64_t>(seed) * 3'000);
      if (got.status != UCS_INPROGRESS) {
        r.end();
        hosts.shared.stop = true;
        return;
      }
      outcome closed;
      r.p.close(r.ep, true, closed);
      hosts.a.pause();
      // The key is in use by an operation that ends with the worker alone.
      require(r.p.progress_until([&] { return got.calls == 1; }), "the canceled end");
      ucp().ucp_rkey_destroy(r.key);
      outcome last;
      ucp_ep_h other = r.p.connect(address_a, hosts.shared.port);
      r.p.send(other, "never", 5, last);
      require(r.p.progress_until([&] { return closed.status != UCS_INPROGRESS; }), "the close is over");
      ucp().ucp_worker_destroy(r.p.worker);
      require(last.calls == 0, "no callback");
      r.p.sleep(1'000'000);
      require(last.calls == 0, "not later either");
      r.release_memory();
      ucp().ucp_cleanup(r.p.context);
      hosts.a.resume();
      hosts.shared.stop = true;
    });
    ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " seed " << seed;
  }
}

TEST(UcpDouble, ArmingAnswersBusyWhileAnythingWaitsAndTheDescriptorTellsOfWhatComesAfter) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    requester r(hosts.b, hosts.shared, page);
    outcome hello;
    r.p.send(r.ep, "x", 1, hello);
    require(r.p.progress_until([&] { return hello.status == UCS_OK; }), "a connection");
    outcome got;
    require(UCS_PTR_IS_PTR(r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, got)), "a posted GET");
    // The event before the arm: busy. Nobody armed, so the descriptor said nothing.
    require(!r.p.wait_descriptor(1'000'000), "an unarmed descriptor promises nothing");
    require(ucp().ucp_worker_arm(r.p.worker) == UCS_ERR_BUSY, "busy with what came");
    while (ucp().ucp_worker_progress(r.p.worker) != 0) {
    }
    require(got.status == UCS_OK, "the bytes");
    require(ucp().ucp_worker_arm(r.p.worker) == UCS_OK, "nothing waits any more");
    require(!r.p.wait_descriptor(1'000'000), "and nothing comes");
    // The event after the arm: the descriptor wakes.
    outcome again;
    require(UCS_PTR_IS_PTR(r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, again)), "a posted GET");
    require(ucp().ucp_worker_arm(r.p.worker) == UCS_OK, "armed before the answer");
    require(r.p.wait_descriptor(10'000'000), "the answer wakes");
    require(r.p.progress_until([&] { return again.status == UCS_OK; }), "the bytes");
    // A call between arm and sleep: the arm is used up.
    require(ucp().ucp_worker_arm(r.p.worker) == UCS_OK, "armed");
    outcome third;
    require(UCS_PTR_IS_PTR(r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, third)), "a posted GET");
    require(!r.p.wait_descriptor(10'000'000), "a call after the arm takes the wake away");
    require(r.p.progress_until([&] { return third.status == UCS_OK; }), "the bytes");
    r.end();
    hosts.shared.stop = true;
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpDouble, ADescriptorThatStaysReadableIsAPlannedFault) {
  pair_of_hosts hosts;
  hosts.plan({{"ucp.arm.busy", "b", 1, 1, "stuck", 3}, {"ucp.arm.busy", "b", 2, 1, "busy", 0}});
  hosts.b.spawn("main", [&] {
    process p(hosts.b);
    require(ucp().ucp_worker_arm(p.worker) == UCS_OK, "armed");
    for (int i = 0; i < 3; ++i) require(p.wait_descriptor(1'000'000), "readable with nothing behind it");
    require(!p.wait_descriptor(1'000'000), "then quiet");
    require(ucp().ucp_worker_arm(p.worker) == UCS_ERR_BUSY, "busy with nothing to do");
    require(ucp().ucp_worker_progress(p.worker) == 0, "nothing to do");
    p.destroy();
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpDouble, NobodyListeningAndARejectionReachTheErrorHandler) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] {
    process p(hosts.a);
    hosts.shared.port = p.listen();
    require(p.progress_until([&] { return !p.requests.empty(); }), "a request");
    p.destroy();  // rejects it
  });
  hosts.b.spawn("main", [&] {
    process p(hosts.b);
    ucp_ep_h nobody = p.connect(address_a, 4);
    require(p.progress_until([&] { return p.errors == 1; }) && p.last_error == UCS_ERR_UNREACHABLE, "nobody listens");
    p.close_now(nobody, true);
    while (hosts.shared.port == 0) p.sleep(1'000);
    ucp_ep_h unwanted = p.connect(address_a, hosts.shared.port);
    outcome sent;
    require(UCS_PTR_IS_PTR(p.send(unwanted, "x", 1, sent)), "queued");
    require(p.progress_until([&] { return p.errors == 2; }) && p.last_error == UCS_ERR_REJECTED, "rejected");
    require(p.progress_until([&] { return sent.calls == 1; }) && sent.status == UCS_ERR_REJECTED,
            "and what was queued");
    p.close_now(unwanted, true);
    p.destroy();
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpDouble, AKeyThatIsCutOrWrongIsRefused) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    requester r(hosts.b, hosts.shared, page);
    board bad;
    bad.key.fill(std::byte{0x5a});
    ucp_rkey_h key = nullptr;
    require(ucp().ucp_ep_rkey_unpack(r.ep, bad.key.data(), &key) == UCS_ERR_UNREACHABLE, "an unknown format");
    std::copy_n(hosts.shared.key.begin(), 20, bad.key.begin());
    require(ucp().ucp_ep_rkey_unpack(r.ep, bad.key.data(), &key) == UCS_ERR_INVALID_PARAM, "a key that was cut off");
    bad.key = hosts.shared.key;
    bad.key[21] ^= std::byte{1};
    require(ucp().ucp_ep_rkey_unpack(r.ep, bad.key.data(), &key) == UCS_ERR_INVALID_PARAM, "a key with a wrong byte");
    r.end();
    hosts.shared.stop = true;
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpDouble, ALateReadOfFreedPagesAtTheOwnerIsW1AndOfATombstoneZeros) {
  for (const bool tombstone : {false, true}) {
    pair_of_hosts hosts;
    hosts.a.spawn("main", [&] {
      process p(hosts.a);
      std::byte* const base = p.grant(page);
      std::memset(base, 0x33, page);
      ucp_mem_h memory = p.map(base, page);
      p.pack(memory, hosts.shared);
      hosts.shared.address = reinterpret_cast<std::uint64_t>(base);
      require(ucp().ucp_mem_unmap(p.context, memory) == UCS_OK, "an unmap that answers");
      if (tombstone) {
        require(p.pages().tombstone(base, page), "a tombstone");
      } else {
        p.pages().free(base, page);
      }
      hosts.shared.port = p.listen();
      ucp_ep_h ep = nullptr;
      p.progress_until(
          [&] {
            if (!p.requests.empty()) ep = p.accept();
            return hosts.shared.stop;
          },
          60'000'000'000);
      p.close_now(ep, true);
      p.destroy();
    });
    hosts.b.spawn("main", [&] {
      requester r(hosts.b, hosts.shared, page);
      std::memset(r.to, 0x44, page);
      outcome got;
      r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, got);
      require(r.p.progress_until([&] { return got.status == UCS_OK; }), "a stale key succeeds");
      require(std::all_of(r.to, r.to + page, [](std::byte b) { return b == std::byte{0}; }), "with zeros");
      r.end();
      hosts.shared.stop = true;
    });
    EXPECT_EQ(hosts.run(), tombstone ? "" : "W-1") << hosts.sentence();
    EXPECT_EQ(hosts.sentence().find("a block 1") != std::string::npos, !tombstone) << hosts.sentence();
  }
}

TEST(UcpDouble, UnmappingUnderAPostedGetIsW1) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    requester r(hosts.b, hosts.shared, page);
    outcome got;
    require(UCS_PTR_IS_PTR(r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, got)), "a posted GET");
    ucp().ucp_mem_unmap(r.p.context, r.memory);
  });
  EXPECT_EQ(hosts.run(), "W-1");
  EXPECT_NE(hosts.sentence().find("transfer"), std::string::npos) << hosts.sentence();
}

TEST(UcpDouble, BytesOfAnAbandonedTransferInTheNextTenantsSpanAreW3) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    requester r(hosts.b, hosts.shared, 2 * page);
    sim::memory_of(hosts.b).tag_range(r.to, page, 1);
    outcome got;
    require(UCS_PTR_IS_PTR(r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, got)), "a posted GET");
    sim::memory_of(hosts.b).tag_range(r.to, page, 2);
    r.p.progress_for(10'000'000);
  });
  EXPECT_EQ(hosts.run(), "W-3");
  EXPECT_NE(hosts.sentence().find("tenant 2 at b block 1 offset 0"), std::string::npos) << hosts.sentence();
}

TEST(UcpDouble, ALoopbackConnectionOfOneWorkerServesItself) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    pair_of_hosts hosts(seed, true);
    hosts.a.spawn("main", [&] {
      process p(hosts.a);
      const std::uint16_t port = p.listen();
      ucp_ep_h client = p.connect(0x7f000001, port);
      require(p.progress_until([&] { return !p.requests.empty(); }), "its own request");
      ucp_ep_h server = p.accept();
      std::byte* const base = p.grant(4 * page);
      for (std::size_t i = 0; i < 2 * page; ++i) base[i] = pattern(i);
      ucp_mem_h memory = p.map(base, 4 * page);
      p.pack(memory, hosts.shared);
      ucp_rkey_h key = p.unpack(client, hosts.shared);
      outcome got;
      p.get(client, base + 2 * page, 2 * page, reinterpret_cast<std::uint64_t>(base), key, got);
      require(p.progress_until([&] { return got.status != UCS_INPROGRESS; }), "an end");
      require(got.status == UCS_OK && std::memcmp(base, base + 2 * page, 2 * page) == 0, "its own bytes");
      ucp().ucp_rkey_destroy(key);
      p.close_now(client, true);
      require(p.progress_until([&] { return p.errors == 1; }), "the other end learns it");
      p.close_now(server, true);
      require(ucp().ucp_mem_unmap(p.context, memory) == UCS_OK, "an unmap that answers");
      p.pages().free(base, 4 * page);
      p.destroy();
    });
    ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " seed " << seed;
  }
}

TEST(UcpDouble, ARendezvousDescriptorThatIsRefusedFailsItsSender) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] {
    process p(hosts.a);
    p.answer_to_messages = UCS_ERR_REJECTED;
    hosts.shared.port = p.listen();
    ucp_ep_h ep = nullptr;
    require(p.progress_until([&] {
      if (!p.requests.empty()) ep = p.accept();
      return p.errors == 1;
    }),
            "a peer that leaves");
    require(p.messages.size() == 1 && p.last_was_descriptor, "one descriptor");
    p.close_now(ep, true);
    p.destroy();
  });
  hosts.b.spawn("main", [&] {
    process p(hosts.b);
    while (hosts.shared.port == 0) p.sleep(1'000);
    ucp_ep_h ep = p.connect(address_a, hosts.shared.port);
    auto large = std::make_unique<std::array<char, 60'000>>();
    outcome sent;
    require(UCS_PTR_IS_PTR(p.send(ep, large->data(), large->size(), sent)), "a request");
    require(p.progress_until([&] { return sent.calls == 1; }) && sent.status == UCS_ERR_REJECTED,
            "the receiver's word");
    p.close_now(ep, false);
    p.destroy();
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpDouble, AMessageIsReadWhenItLeavesSoItsBytesMustLiveUntilItsEnd) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] {
    process p(hosts.a);
    hosts.shared.port = p.listen();
    ucp_ep_h ep = nullptr;
    require(p.progress_until([&] {
      if (!p.requests.empty()) ep = p.accept();
      return p.errors == 1;
    }),
            "a peer that leaves");
    require(p.messages.size() == 1 && p.messages[0] == "later", "what stood there when it left");
    p.close_now(ep, true);
    p.destroy();
  });
  hosts.b.spawn("main", [&] {
    process p(hosts.b);
    while (hosts.shared.port == 0) p.sleep(1'000);
    ucp_ep_h ep = p.connect(address_a, hosts.shared.port);
    char bytes[] = "first";
    outcome sent;
    require(UCS_PTR_IS_PTR(p.send(ep, bytes, 5, sent)), "a request");
    std::memcpy(bytes, "later", 5);
    require(p.progress_until([&] { return sent.status == UCS_OK; }), "an end");
    p.close_now(ep, false);
    p.destroy();
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpDouble, AGetEndsAfterAPartitionIsHealedAndFailsIfItIsNot) {
  for (const bool healed : {true, false}) {
    pair_of_hosts hosts;
    hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page); });
    hosts.b.spawn("main", [&] {
      requester r(hosts.b, hosts.shared, page);
      outcome hello;
      r.p.send(r.ep, "x", 1, hello);
      require(r.p.progress_until([&] { return hello.status == UCS_OK; }), "a connection");
      hosts.fabric().partition(hosts.a, hosts.b);
      outcome got;
      require(UCS_PTR_IS_PTR(r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, got)), "a posted GET");
      require(!r.p.progress_until([&] { return got.calls != 0; }, 10'000'000'000), "no way");
      if (healed) {
        hosts.fabric().heal(hosts.a, hosts.b);
        require(r.p.progress_until([&] { return got.status == UCS_OK; }) && r.right(page), "the bytes");
        r.end();
      } else {
        require(r.p.progress_until([&] { return got.calls != 0; }, 10'000'000'000), "a time-out");
        require(got.status == UCS_ERR_ENDPOINT_TIMEOUT && r.p.errors == 1, "with its status");
        hosts.fabric().heal(hosts.a, hosts.b);
        r.end(true);
      }
      hosts.shared.stop = true;
    });
    EXPECT_EQ(hosts.run(), "") << hosts.sentence();
  }
}

TEST(UcpDouble, ARestartedHostListensAgainAndTheOldEndpointFails) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    requester r(hosts.b, hosts.shared, page);
    outcome got;
    r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, got);
    require(r.p.progress_until([&] { return got.status == UCS_OK; }), "the first life");
    hosts.a.crash();
    hosts.a.restart();
    hosts.shared.port = 0;
    hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page); });
    require(r.p.progress_until([&] { return r.p.errors == 1; }), "the old one is reported");
    ucp().ucp_rkey_destroy(r.key);
    r.p.close_now(r.ep, true);
    while (hosts.shared.port == 0) r.p.sleep(1'000);
    r.ep = r.p.connect(address_a, hosts.shared.port);
    r.key = r.p.unpack(r.ep, hosts.shared);
    std::memset(r.to, 0, page);
    outcome again;
    r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, again);
    require(r.p.progress_until([&] { return again.status == UCS_OK; }) && r.right(page), "the second life");
    r.end();
    hosts.shared.stop = true;
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpDouble, ACloseThatDoesNotEndCanBeGivenBackBeforeTheWorkerIsDestroyed) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    requester r(hosts.b, hosts.shared, page);
    outcome hello;
    r.p.send(r.ep, "x", 1, hello);
    require(r.p.progress_until([&] { return hello.status == UCS_OK; }), "a connection");
    hosts.a.pause();
    ucp().ucp_rkey_destroy(r.key);
    outcome closed;
    const auto request = r.p.close(r.ep, false, closed);
    require(UCS_PTR_IS_PTR(request), "a close that takes a while");
    r.p.progress_for(1'000'000);
    ucp().ucp_request_free(request);
    r.release_memory();
    r.p.destroy();
    require(closed.calls == 0, "giving it back takes the callback away");
    hosts.a.resume();
    hosts.shared.stop = true;
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpDouble, TheDestructionOfAWorkerCallsBackWhatAForcedCloseCancelled) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    requester r(hosts.b, hosts.shared, page);
    outcome hello, got, closed;
    r.p.send(r.ep, "x", 1, hello);
    require(r.p.progress_until([&] { return hello.status == UCS_OK; }), "a connection");
    hosts.a.pause();
    r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, got);
    const auto close = r.p.close(r.ep, true, closed);
    require(got.calls == 0, "nothing inside the close");
    if (UCS_PTR_IS_PTR(close)) ucp().ucp_request_free(close);
    ucp().ucp_worker_destroy(r.p.worker);
    require(got.calls == 1 && got.status == UCS_ERR_CANCELED, "told inside the destruction");
    r.release_memory();
    ucp().ucp_cleanup(r.p.context);
    hosts.a.resume();
    hosts.shared.stop = true;
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

// Determinism ---------------------------------------------------------------------------------------------------

TEST(UcpDouble, OneSeedIsOneRunToTheLastEventAndSeedsDiffer) {
  const auto fingerprint = [](std::uint64_t seed) {
    pair_of_hosts hosts(seed, true);
    hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, 16 * page); });
    hosts.b.spawn("main", [&] {
      requester r(hosts.b, hosts.shared, 16 * page);
      outcome got;
      r.p.get(r.ep, r.to, 16 * page, hosts.shared.address, r.key, got);
      require(r.p.progress_until([&] { return got.status == UCS_OK; }), "an end");
      r.end();
      hosts.shared.stop = true;
    });
    EXPECT_EQ(hosts.run(), "") << hosts.sentence();
    return hosts.world.fingerprint();
  };
  std::set<std::string> all;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string once = fingerprint(seed);
    EXPECT_EQ(once, fingerprint(seed)) << "seed " << seed;
    all.insert(once);
  }
  EXPECT_GT(all.size(), 15u);
}

}  // namespace
