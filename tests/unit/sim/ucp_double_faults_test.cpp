// Faults that are planned at the double of UCX happen where, when and as often as the plan says, and do what its table says.
#include "ucp_double_pair.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ucp_test;

TEST(UcpDoubleFaults, RegistrationsAreRefusedDelayedAndShortAsPlanned) {
  pair_of_hosts hosts;
  hosts.plan({{"nic.register", "b", 1, 1, "refuse", 0},
              {"nic.register", "b", 2, 1, "limit", 0},
              {"nic.register", "b", 3, 1, "delay", 7'000'000},
              {"nic.register", "b", 4, 1, "short", 0}});
  hosts.b.spawn("main", [&] {
    process p(hosts.b);
    std::byte* const base = p.grant(4 * page);
    require(p.map(base, 4 * page) == nullptr && p.map_status == UCS_ERR_NO_MEMORY, "refused");
    require(p.map(base, 4 * page) == nullptr && p.map_status == UCS_ERR_EXCEEDS_LIMIT, "over a limit");
    const std::int64_t before = now();
    ucp_mem_h slow = p.map(base, 4 * page);
    require(p.map_status == UCS_OK && now() - before >= 7'000'000, "slow");
    ucp_mem_h less = p.map(base, 4 * page);
    ucp_mem_attr_t attributes{};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
    require(ucp().ucp_mem_query(less, &attributes) == UCS_OK && attributes.length == 3 * page, "one page less");
    ucp().ucp_mem_unmap(p.context, slow);
    ucp().ucp_mem_unmap(p.context, less);
    p.pages().free(base, 4 * page);
    p.destroy();
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
  EXPECT_TRUE(sim::fault_plan::of(hosts.world).inert().empty());
}

TEST(UcpDoubleFaults, AnUnmapAnswersOkWhateverHappenedAndThePinShowsTheTruth) {
  for (const char* const kind : {"error", "lie"}) {
    pair_of_hosts hosts;
    hosts.plan({{"nic.deregister", "b", 1, 1, kind, 0}});
    hosts.b.spawn("main", [&] {
      process p(hosts.b);
      std::byte* const base = p.grant(page);
      ucp_mem_h memory = p.map(base, page);
      require(ucp().ucp_mem_unmap(p.context, memory) == UCS_OK, "OK");
      require(sim::memory_of(hosts.b).held_pins() == 1, "the pages are pinned all the same");
      p.pages().free(base, page);
      p.destroy();
      require(sim::memory_of(hosts.b).held_pins() == 0, "until the context ends");
    });
    EXPECT_EQ(hosts.run(), "") << hosts.sentence();
  }
}

TEST(UcpDoubleFaults, ACallThatNeverReturnsIsNoLostWakeupAndNoLeak) {
  for (const char* const point : {"nic.register", "nic.deregister", "ucp.worker.destroy", "ucp.cleanup"}) {
    pair_of_hosts hosts;
    hosts.plan({{point, "b", 1, 1, "never", 0}});
    bool returned = false;
    hosts.b.spawn("main", [&] {
      ucp_params_t params{};
      params.field_mask = UCP_PARAM_FIELD_FEATURES;
      params.features = UCP_FEATURE_RMA;
      ucp_context_h context = nullptr;
      require(ucp().ucp_init_version(1, 13, &params, nullptr, &context) == UCS_OK, "a context");
      ucp_worker_params_t worker_params{};
      ucp_worker_h worker = nullptr;
      require(ucp().ucp_worker_create(context, &worker_params, &worker) == UCS_OK, "a worker");
      hf::platform::pages pages;
      std::byte* const base = *pages.allocate(page);
      ucp_mem_map_params_t map{};
      map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
      map.address = base;
      map.length = page;
      ucp_mem_h memory = nullptr;
      require(ucp().ucp_mem_map(context, &map, &memory) == UCS_OK, "mapped memory");
      ucp().ucp_mem_unmap(context, memory);
      ucp().ucp_worker_destroy(worker);
      ucp().ucp_cleanup(context);
      returned = true;
    });
    EXPECT_EQ(hosts.run(), "") << point << ": " << hosts.sentence();
    EXPECT_FALSE(returned) << point;
  }
}

TEST(UcpDoubleFaults, GetsEndInlineOrWithAnErrorPointerAsPlanned) {
  pair_of_hosts hosts;
  hosts.plan({{"ucp.get.error", "b", 1, 1, "error", 0},
              {"ucp.get.error", "b", 2, 1, "error", UCS_ERR_NO_RESOURCE},
              {"ucp.get.inline", "b", 1, 1, "inline", 0}});
  hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, 4 * page); });
  hosts.b.spawn("main", [&] {
    requester r(hosts.b, hosts.shared, 4 * page);
    outcome hello;
    r.p.send(r.ep, "x", 1, hello);
    require(r.p.progress_until([&] { return hello.status == UCS_OK; }), "a connection");
    outcome first, second, third;
    r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, first);
    require(first.status == UCS_ERR_NO_MEMORY && first.calls == 0, "no memory");
    r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, second);
    require(second.status == UCS_ERR_NO_RESOURCE && second.calls == 0, "the planned status");
    require(r.p.get(r.ep, r.to, 4 * page, hosts.shared.address, r.key, third) == nullptr, "done before it returned");
    require(r.right(4 * page) && third.calls == 0, "every byte, no callback");
    r.end();
    hosts.shared.stop = true;
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
  EXPECT_TRUE(sim::fault_plan::of(hosts.world).inert().empty());
}

TEST(UcpDoubleFaults, AnEndpointFailsAlthoughThePeerLives) {
  pair_of_hosts hosts;
  hosts.plan({{"ucp.ep.fail", "b", 1, 1, "fail", 0}});
  hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    requester r(hosts.b, hosts.shared, page);
    outcome got;
    require(UCS_PTR_IS_PTR(r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, got)), "a posted GET");
    require(r.p.progress_until([&] { return got.calls == 1; }) && got.status == UCS_ERR_ENDPOINT_TIMEOUT, "failed");
    require(r.p.errors == 1, "and reported");
    r.end(true);
    hosts.shared.stop = true;
  });
  EXPECT_EQ(hosts.run(), "") << hosts.sentence();
}

TEST(UcpDoubleFaults, AHostCrashesInTheMiddleOfItsDriverCallAndItsHandlesAreNobodysLeak) {
  for (std::uint64_t nth = 1; nth <= 40; ++nth) {
    pair_of_hosts hosts(nth, true);
    hosts.plan({{"host.crash", "a", nth, 1, "crash", 0}});
    hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, 16 * page); });
    hosts.b.spawn("main", [&] {
      process p(hosts.b);
      while (hosts.shared.port == 0 && hosts.a.alive()) p.sleep(1'000);
      if (hosts.shared.port != 0) {
        ucp_ep_h ep = p.connect(address_a, hosts.shared.port);
        outcome sent;
        p.send(ep, "x", 1, sent);
        p.progress_until([&] { return p.errors != 0; }, 200'000'000);
        p.close_now(ep, true);
        require(p.progress_until([&] { return sent.status != UCS_INPROGRESS; }), "every operation ends");
      }
      hosts.shared.stop = true;
      p.destroy();
    });
    ASSERT_EQ(hosts.run(), "") << hosts.sentence() << " at call " << nth;
  }
}

}  // namespace
