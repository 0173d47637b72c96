// What core must not do to UCX is reported by the double, with a sentence that names it: calls after the end, in the wrong
// order, from the wrong thread, inside callbacks, under locks, and what is left behind.
#include "ucp_double_pair.hpp"

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>

#include <gtest/gtest.h>

namespace {

using namespace ucp_test;

/// Runs `wrong` on b against a serving owner, and answers what was reported.
template <class Wrong>
std::string misused(Wrong wrong, std::string* sentence = nullptr) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] { own(hosts.a, hosts.shared, page); });
  hosts.b.spawn("main", [&] {
    requester r(hosts.b, hosts.shared, page);
    outcome hello;
    r.p.send(r.ep, "x", 1, hello);
    require(r.p.progress_until([&] { return hello.status == UCS_OK; }), "a connection");
    wrong(r, hosts);
    hosts.shared.stop = true;
  });
  std::string what = hosts.run();
  if (sentence != nullptr) *sentence = hosts.sentence();
  return what;
}

TEST(UcpDoubleMisuse, AnEndpointThatIsUsedAfterItsCloseIsReported) {
  EXPECT_EQ(misused([](requester& r, pair_of_hosts&) {
              ucp().ucp_rkey_destroy(r.key);
              outcome closed, sent;
              r.p.close(r.ep, true, closed);
              r.p.send(r.ep, "x", 1, sent);
            }),
            "driver misuse: use after end");
}

TEST(UcpDoubleMisuse, AnEndpointThatIsClosedBeforeItsIdleKeyIsReported) {
  EXPECT_EQ(misused([](requester& r, pair_of_hosts&) {
              outcome closed;
              r.p.close(r.ep, true, closed);
            }),
            "driver misuse: order of destruction");
}

TEST(UcpDoubleMisuse, AWorkerThatIsDestroyedBeforeAnIdleKeyIsReported) {
  std::string sentence;
  EXPECT_EQ(misused([](requester& r, pair_of_hosts&) { ucp().ucp_worker_destroy(r.p.worker); }, &sentence),
            "driver misuse: order of destruction");
  EXPECT_NE(sentence.find("before 1 of its idle keys"), std::string::npos) << sentence;
}

TEST(UcpDoubleMisuse, AKeyThatIsDestroyedUnderAPostedGetIsReported) {
  EXPECT_EQ(misused([](requester& r, pair_of_hosts& hosts) {
              outcome got;
              r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, got);
              ucp().ucp_rkey_destroy(r.key);
            }),
            "driver misuse: key in use");
}

TEST(UcpDoubleMisuse, ARequestThatIsFreedBeforeItsEndIsReported) {
  EXPECT_EQ(misused([](requester& r, pair_of_hosts& hosts) {
              outcome got;
              const auto request = r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, got);
              ucp().ucp_request_free(request);
            }),
            "driver misuse: request in use");
}

TEST(UcpDoubleMisuse, AWorkerThatIsDestroyedWhileSomebodyWaitsForACloseIsReported) {
  EXPECT_EQ(misused([](requester& r, pair_of_hosts& hosts) {
              hosts.a.pause();
              ucp().ucp_rkey_destroy(r.key);
              outcome closed;
              r.p.close(r.ep, false, closed);
              ucp().ucp_worker_destroy(r.p.worker);
            }),
            "driver misuse: order of destruction");
}

TEST(UcpDoubleMisuse, AWorkerThatIsDestroyedUnderATransferThatNoForcedCloseCancelledIsReported) {
  EXPECT_EQ(misused([](requester& r, pair_of_hosts& hosts) {
              outcome hello, got;
              r.p.send(r.ep, "x", 1, hello);
              require(r.p.progress_until([&] { return hello.status == UCS_OK; }), "a connection");
              hosts.a.pause();
              r.p.get(r.ep, r.to, page, hosts.shared.address, r.key, got);
              ucp().ucp_worker_destroy(r.p.worker);
            }),
            "driver misuse: order of destruction");
}

TEST(UcpDoubleMisuse, AWorkerThatIsUsedByAnotherThreadIsReportedWithBothNames) {
  std::string sentence;
  EXPECT_EQ(misused(
                [](requester& r, pair_of_hosts& hosts) {
                  ucp_worker_h worker = r.p.worker;
                  hosts.b.spawn("other", [worker] { ucp().ucp_worker_progress(worker); });
                  r.p.sleep(1'000);
                },
                &sentence),
            "driver misuse: wrong thread");
  EXPECT_NE(sentence.find("b/main"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("b/other"), std::string::npos) << sentence;
}

TEST(UcpDoubleMisuse, AClosingInsideTheErrorHandlerIsReported) {
  EXPECT_EQ(misused([](requester& r, pair_of_hosts& hosts) {
              ucp().ucp_rkey_destroy(r.key);
              r.p.in_error = [](process& p, ucp_ep_h ep) {
                outcome closed;
                p.close(ep, true, closed);
              };
              hosts.a.crash();
              r.p.progress_for(100'000'000);
            }),
            "driver misuse: inside a callback");
}

TEST(UcpDoubleMisuse, AProgressInsideACallbackIsReported) {
  EXPECT_EQ(misused([](requester& r, pair_of_hosts& hosts) {
              r.p.in_error = [](process& p, ucp_ep_h) { ucp().ucp_worker_progress(p.worker); };
              hosts.a.crash();
              r.p.progress_for(100'000'000);
            }),
            "driver misuse: inside a callback");
}

TEST(UcpDoubleMisuse, ADriverCallUnderALockOfCoreIsReportedWithTheLock) {
  std::string sentence;
  EXPECT_EQ(misused(
                [](requester& r, pair_of_hosts&) {
                  hf::platform::mutex mutex(hf::lock_ranks::pinned_suballocator);
                  hf::scoped_lock lock(mutex);
                  ucp().ucp_worker_progress(r.p.worker);
                },
                &sentence),
            "driver call under a lock");
  EXPECT_NE(sentence.find("pinned suballocator"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("ucp_worker_progress"), std::string::npos) << sentence;
}

TEST(UcpDoubleMisuse, AContextThatEndsBeforeItsWorkerOrItsMemoryIsReported) {
  EXPECT_EQ(misused([](requester& r, pair_of_hosts&) { ucp().ucp_cleanup(r.p.context); }),
            "driver misuse: order of destruction");
  EXPECT_EQ(misused([](requester& r, pair_of_hosts&) {
              ucp().ucp_rkey_destroy(r.key);
              r.p.close_now(r.ep, true);
              ucp().ucp_worker_destroy(r.p.worker);
              ucp().ucp_cleanup(r.p.context);
            }),
            "driver misuse: order of destruction");
}

TEST(UcpDoubleMisuse, AnUnmapThatIsRepeatedIsReported) {
  EXPECT_EQ(misused([](requester& r, pair_of_hosts&) {
              ucp().ucp_mem_unmap(r.p.context, r.memory);
              ucp().ucp_mem_unmap(r.p.context, r.memory);
            }),
            "driver misuse: use after end");
}

TEST(UcpDoubleMisuse, AHandleLeftOpenAtTheEndIsALeak) {
  pair_of_hosts hosts;
  hosts.b.spawn("main", [&] {
    process p(hosts.b);
    ucp().ucp_worker_destroy(p.worker);
  });
  EXPECT_EQ(hosts.run(), "handle leak");
  EXPECT_NE(hosts.sentence().find("1 of ucp context"), std::string::npos) << hosts.sentence();
}

TEST(UcpDoubleMisuse, ARequestThatWasNeitherAcceptedNorRejectedIsReported) {
  pair_of_hosts hosts;
  hosts.a.spawn("main", [&] {
    process p(hosts.a);
    hosts.shared.port = p.listen();
    require(p.progress_until([&] { return !p.requests.empty(); }), "a request");
    p.requests.clear();
    p.destroy();
  });
  hosts.b.spawn("main", [&] {
    process p(hosts.b);
    while (hosts.shared.port == 0) p.sleep(1'000);
    ucp_ep_h ep = p.connect(address_a, hosts.shared.port);
    p.progress_for(1'000'000);
    p.close_now(ep, true);
    p.destroy();
  });
  EXPECT_EQ(hosts.run(), "driver misuse: order of destruction");
}

}  // namespace
