// What is told of a peer that died or stands still (F5, F6, F7, F11).
#include "process.hpp"

namespace holdfast::driver_probe {

namespace {

constexpr std::int64_t long_enough = 1'500 * ms;

void killed(bench& b) {
  client c(b);
  b.strike(blow::kill);
  const bool told = c.p.progress_until([&] { return c.p.errors != 0; }, b.over_memory ? long_enough : 5 * second);
  c.p.progress_for(100 * ms);
  if (!told) {
    answer(b, "never");
  } else {
    answer(b, "within 5 s, %s", c.p.errors == 1 ? "once" : "several times");
  }
  if (b.over_memory) {
    b.ucp.ucp_rkey_destroy(c.key);
    c.p.destroy_worker();
    c.release_memory();
    c.p.end();
  } else {
    c.end(false);
  }
}

void killed_posted(bench& b) {
  client c(b);
  c.ask(command::rest);
  outcome one, two;
  c.get(page, one);
  c.get(64 * 1024, two);
  b.strike(blow::kill);
  const bool ended =
      c.p.progress_until([&] { return one.ended() && two.ended(); }, b.over_memory ? long_enough : 5 * second);
  if (!ended) {
    answer(b, "never");
    c.p.destroy_worker();
    c.release_memory();
    c.p.end();
    return;
  }
  answer(b, "%s, each told %s", one.status != UCS_OK && two.status != UCS_OK ? "with an error" : "with success",
         one.calls == 1 && two.calls == 1 ? "once" : "several times");
  c.end(false);
}

void killed_status(bench& b) {
  client c(b);
  b.strike(blow::kill);
  require(c.p.progress_until([&] { return c.p.errors != 0; }), "nothing was told");
  answer(b, c.p.last_error == UCS_ERR_CONNECTION_RESET   ? "connection reset"
            : c.p.last_error == UCS_ERR_ENDPOINT_TIMEOUT ? "endpoint timeout"
                                                         : "another error");
  c.end(false);
}

void stopped(bench& b) {
  client c(b);
  outcome got;
  b.strike(blow::stop);
  c.get(page, got);
  const bool told = c.p.progress_until([&] { return c.p.errors != 0 || got.ended(); }, long_enough);
  b.strike(blow::go_on);
  const bool ended = c.p.progress_until([&] { return got.ended(); });
  answer(b, "%s; when it goes on the GET %s", told ? "is told" : "never",
         ended && got.status == UCS_OK && c.right(page) ? "ends with its bytes" : "does not end well");
  c.end();
}

void get_after_loss(bench& b) {
  client c(b);
  b.strike(blow::kill);
  require(c.p.progress_until([&] { return c.p.errors != 0; }), "nothing was told");
  outcome got;
  const ucs_status_ptr_t handed = c.p.get(c.ep, c.to, page, b.shared.address, c.key, got);
  if (UCS_PTR_IS_ERR(handed)) {
    c.p.progress_for(50 * ms);
    answer(b, "an error pointer, %s", got.calls == 0 ? "and no callback" : "and a callback");
  } else {
    c.p.progress_until([&] { return got.ended(); });
    answer(b, "a request that ends with %s", got.status == UCS_OK ? "success" : "an error");
  }
  c.end(false);
}

void close_after_loss(bench& b) {
  client c(b);
  b.strike(blow::kill);
  require(c.p.progress_until([&] { return c.p.errors != 0; }), "nothing was told");
  b.ucp.ucp_rkey_destroy(c.key);
  c.key = nullptr;
  const bool closed = c.p.close_and_wait(c.ep, true);
  c.ep = nullptr;
  answer(b, closed ? "ends" : "does not end");
  c.end(false);
}

void peer_with_memory(bench& b) {
  // The peer's worker address, with shared memory allowed on both sides, and error mode PEER.
  client c(b);
  const ucp_ep_h guarded = c.p.connect_worker(std::span(b.shared.worker).first(b.shared.worker_bytes), true);
  if (c.p.created != UCS_OK) {
    answer(b, "no endpoint");
  } else {
    const std::uint32_t before = b.shared.messages.load();
    outcome sent;
    c.p.send(guarded, 7, "more", 4, sent, UCP_AM_SEND_FLAG_REPLY);
    require(c.p.progress_until([&] { return b.shared.messages.load() != before; }), "a message did not come");
    require(c.p.progress_until([&] { return sent.ended(); }), "a message did not end");
    b.strike(blow::kill);
    const bool told = c.p.progress_until([&] { return c.p.errors != 0; });
    answer(b, told ? "reports a death" : "reports no death");
  }
  b.ucp.ucp_rkey_destroy(c.key);
  if (c.p.created == UCS_OK) require(c.p.close_and_wait(guarded, true), "an endpoint did not close");
  c.p.destroy_worker();
  c.release_memory();
  c.p.end();
}

void dead_address(bench& b) {
  client c(b);
  b.strike(blow::kill);
  const ucp_ep_h hopeless = c.p.connect_worker(std::span(b.shared.worker).first(b.shared.worker_bytes), false);
  if (hopeless == nullptr || c.p.created != UCS_OK) {
    answer(b, "refused by the call");
  } else {
    outcome sent;
    c.p.send(hopeless, 7, "more", 4, sent, UCP_AM_SEND_FLAG_REPLY);
    c.p.progress_until([&] { return sent.ended() || c.p.errors != 0; }, long_enough);
    answer(b, "made; %s", c.p.errors != 0 ? "its error handler runs" : "nothing is told");
  }
  b.ucp.ucp_rkey_destroy(c.key);
  c.p.destroy_worker();
  c.release_memory();
  c.p.end();
}

void serve_dead_reader(bench& b, unsigned fetches, std::size_t bytes) {
  b.shared.fetches = fetches;
  b.shared.fetch_bytes = bytes;
  client c(b);
  c.ask(command::map_other);
  if (!b.over_memory) {
    require(c.p.listen() == UCS_OK, "no listener");
    b.shared.back_port = c.p.port();
  } else {
    b.shared.back_worker_bytes = static_cast<std::uint32_t>(c.p.worker_address(b.shared.back_worker));
  }
  b.shared.back_address = reinterpret_cast<std::uint64_t>(c.to);
  c.p.pack(c.memory, b.shared.back_key);
  b.shared.what.store(command::call_back);
  const std::uint32_t number = b.shared.asked.fetch_add(1) + 1;
  ucp_ep_h from = nullptr;
  require(c.p.progress_until([&] {
    if (!c.p.requests.empty()) from = c.p.accept(true);
    return b.shared.done.load() == number;
  }),
          "the owner did not connect");
  c.p.progress_for(50 * ms);
  b.shared.what.store(command::fetch);
  b.shared.asked.fetch_add(1);
  while (b.shared.done.load() != number + 1) b.sleep_ns(ms);
  b.sleep_ns(20 * ms);  // its request has arrived, and nobody looked
  b.strike(blow::kill);
  b.sleep_ns(20 * ms);
  // If serving it ends this process, that is the answer.
  c.p.progress_for(300 * ms);
  answer(b, "goes on");
  b.ucp.ucp_rkey_destroy(c.key);
  if (from != nullptr) require(c.p.close_and_wait(from, true), "an endpoint did not close");
  if (!b.over_memory) require(c.p.close_and_wait(c.ep, true), "an endpoint did not close");
  c.p.destroy_worker();
  c.release_memory();
  c.p.end();
}

void two_reads(bench& b) { serve_dead_reader(b, 2, page); }

void one_read(bench& b) { serve_dead_reader(b, 1, offered_bytes / 2 - page); }

constexpr probe probes[] = {
    {"address_dead", "F7", "An endpoint to the worker address of a dead process is", through_memory, rule::may, "", "",
     &dead_address},
    {"loss_close", "F5", "After the error handler ran, closing the endpoint", over_tcp, rule::same, "loss (7.7)", "",
     &close_after_loss},
    {"loss_get", "F3", "A GET on an endpoint whose error handler ran answers", over_tcp, rule::same,
     "the refused exit (4.6)", "", &get_after_loss},
    {"loss_killed", "F11", "The death of a peer is told", over_both, rule::same, "loss of a peer (7.7)", "", &killed},
    {"loss_killed_posted", "F6", "GETs outstanding at a peer that dies end", over_both, rule::same,
     "PEER promises ends, NONE nothing (7.7)", "", &killed_posted},
    {"loss_mode_peer", "F7", "With shared memory allowed, an endpoint with error mode PEER", through_memory, rule::same,
     "the control endpoint reports death (7.7)", "", &peer_with_memory},
    {"loss_reader", "F14", "A process that serves two GETs of a peer that has died", over_both, rule::same,
     "GETs take turns (decision 53)", "goes on", &two_reads},
    {"loss_reader_one", "F14", "The same, with one GET of less than a segment", over_both, rule::same,
     "GETs take turns (decision 53)", "", &one_read},
    {"loss_status", "F5", "The status that the error handler gets when a peer dies is", over_tcp, rule::may, "", "",
     &killed_status},
    {"loss_stopped", "F11", "That a peer stands still is told", over_both, rule::same, "silence is not death (7.7)", "",
     &stopped},
};

}  // namespace

std::span<const probe> loss_probes() { return probes; }

}  // namespace holdfast::driver_probe
