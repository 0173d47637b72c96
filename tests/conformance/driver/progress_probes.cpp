// Progress, arming, and where callbacks run (F1, F21).
#include "process.hpp"

namespace holdfast::driver_probe {

namespace {

/// Progress until nothing comes any more, and the worker can be armed.
bool settle_and_arm(client& c) {
  for (int i = 0; i < 200; ++i) {
    while (c.p.progress() != 0) {
    }
    if (c.of.ucp.ucp_worker_arm(c.p.worker) == UCS_OK) return true;
    c.of.sleep_ns(ms);
  }
  return false;
}

void unprocessed(bench& b) {
  client c(b);
  require(settle_and_arm(c), "a worker that cannot be armed");
  while (c.p.progress() != 0) {
  }
  b.shared.what.store(command::send);
  const std::uint32_t number = b.shared.asked.fetch_add(1) + 1;
  while (b.shared.done.load() != number) b.sleep_ns(ms);
  b.sleep_ns(20 * ms);  // it has arrived, and nobody looked
  const ucs_status_t armed = b.ucp.ucp_worker_arm(c.p.worker);
  const bool awake = armed == UCS_ERR_BUSY || (armed == UCS_OK && b.wait_readable(c.p.descriptor, second));
  require(c.p.progress_until([&] { return c.p.messages != 0; }), "the message did not come");
  answer(b, awake ? "busy, or readable at once" : "slept over it");
  c.end();
}

void quiet_until(bench& b) {
  client c(b);
  require(settle_and_arm(c), "a worker that cannot be armed");
  const bool early = b.wait_readable(c.p.descriptor, 100 * ms);
  require(settle_and_arm(c), "a worker that cannot be armed again");
  b.shared.what.store(command::send);
  const std::uint32_t number = b.shared.asked.fetch_add(1) + 1;
  const bool woken = b.wait_readable(c.p.descriptor, 2 * second);
  require(c.p.progress_until([&] { return c.p.messages != 0; }), "the message did not come");
  require(c.p.progress_until([&] { return b.shared.done.load() == number; }), "the owner did not finish");
  answer(b, "%s; %s", early ? "readable with nothing to do" : "quiet with nothing to do",
         woken ? "woken by a message" : "not woken by a message");
  c.end();
}

void callbacks(bench& b) {
  client c(b);
  c.ask(command::send);
  require(c.p.progress_until([&] { return c.p.messages != 0; }), "no message");
  const std::uint32_t there = b.shared.handler_outside.load();
  answer(b, c.p.outside + static_cast<int>(there) == 0 ? "in progress alone" : "outside progress too");
  c.end();
}

void accept_or_reject(bench& b) {
  client c(b);
  c.ask(command::reject);
  const ucp_ep_h unwanted = c.p.connect_socket(b.owner_address(), b.shared.port, true);
  require(c.p.created == UCS_OK, "no endpoint");
  const bool told = c.p.progress_until([&] { return c.p.errors != 0; });
  answer(b, told ? "its error handler runs" : "nothing is told");
  require(c.p.close_and_wait(unwanted, true), "an endpoint did not close");
  c.end();
}

void nobody(bench& b) {
  client c(b);
  const ucp_ep_h lonely = c.p.connect_socket(b.owner_address(), 1, true);
  if (c.p.created != UCS_OK) {
    answer(b, "refused by the call");
  } else {
    const bool told = c.p.progress_until([&] { return c.p.errors != 0; });
    answer(b, told ? "its error handler runs" : "nothing is told");
    require(c.p.close_and_wait(lonely, true), "an endpoint did not close");
  }
  c.end();
}

void port_taken(bench& b) {
  process p(b);
  require(p.listen() == UCS_OK, "no listener");
  const std::uint16_t port = p.port();
  ucp_listener_h first = p.listener;
  process second_one(b);
  const ucs_status_t status = second_one.listen(port);
  answer(b, "%s; port 0 became %s",
         status == UCS_OK         ? "both listen"
         : status == UCS_ERR_BUSY ? "busy"
                                  : "an error",
         port == 0 ? "none" : "a port");
  if (status != UCS_OK) second_one.listener = nullptr;
  p.listener = first;
  second_one.end();
  p.end();
}

constexpr probe probes[] = {
    {"arm_unprocessed", "F1", "A message arrived and nobody progressed: arming, then waiting for the descriptor, is",
     over_both, rule::same, "the progress loop's sleep (7.2)", "", &unprocessed},
    {"arm_wakes", "F1", "An armed worker's descriptor, with nothing to do, and when a message comes, is", over_both,
     rule::same, "the progress loop's sleep (7.2)", "", &quiet_until},
    {"callbacks_in_progress", "F21", "Callbacks of messages, requests, connections and operations run", over_both,
     rule::same, "callbacks take no lock (8.2)", "", &callbacks},
    {"connect_nobody", "F5", "An endpoint to a port where nobody listens:", over_tcp, rule::same,
     "connection attempts end (4.4)", "", &nobody},
    {"connect_rejected", "F21", "An endpoint whose connection request is rejected:", over_tcp, rule::same,
     "connection attempts end (4.4)", "", &accept_or_reject},
    {"listen_taken", "7.4", "A listener on a port that is taken answers", over_tcp, rule::same,
     "start-up says why (7.4)", "", &port_taken},
};

}  // namespace

std::span<const probe> progress_probes() { return probes; }

}  // namespace holdfast::driver_probe
