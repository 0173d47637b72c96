// How endpoints close (F5, F7, F8, F9, F10, F30).
#include "process.hpp"

namespace holdfast::driver_probe {

namespace {

const char* word(ucs_status_t status) {
  return status == UCS_OK             ? "success"
         : status == UCS_INPROGRESS   ? "nothing"
         : status == UCS_ERR_CANCELED ? "canceled"
                                      : "an error";
}

void forced_without_mode(bench& b) {
  client c(b);
  outcome closed;
  c.p.close(c.ep, true, closed);
  const bool refused = closed.status == UCS_ERR_INVALID_PARAM;
  c.clear();
  const bool works = c.get_and_wait(page) && c.right(page);
  answer(b, "%s; the endpoint %s", refused ? "invalid parameter" : word(closed.status), works ? "works on" : "is gone");
  c.end();
}

void forced_posted(bench& b) {
  client c(b);
  c.ask(command::rest);
  outcome got, closed;
  c.get(page, got);
  require(!got.ended(), "a GET of an owner that rests ended");
  c.p.close(c.ep, true, closed);
  c.ep = nullptr;
  const bool later = !got.ended();
  c.p.progress_until([&] { return got.ended() && closed.ended(); }, 2 * second);
  answer(b, "returns %s; then the GET ends with %s, told %d time%s", later ? "first" : "after the GET's callback",
         word(got.status), got.calls, got.calls == 1 ? "" : "s");
  c.ask(command::serve);
  c.end();
}

void key_after_forced(bench& b) {
  client c(b);
  c.ask(command::rest);
  outcome got, closed;
  c.get(page, got);
  c.p.close(c.ep, true, closed);
  c.ep = nullptr;
  require(c.p.progress_until([&] { return got.ended() && closed.ended(); }), "the GET did not end");
  b.ucp.ucp_rkey_destroy(c.key);
  c.key = nullptr;
  c.ask(command::serve);
  c.end();
  answer(b, "works");
}

void flushed(bench& b) {
  client c(b);
  b.ucp.ucp_rkey_destroy(c.key);
  c.key = nullptr;
  outcome closed;
  c.p.close(c.ep, false, closed);
  c.ep = nullptr;
  c.p.progress_until([&] { return closed.ended(); }, 2 * second);
  const int errors = c.p.errors;
  answer(b, "ends with %s; error handler here: %s", word(closed.status), errors == 0 ? "silent" : "runs");
  c.end();
}

void flushed_told(bench& b) {
  client c(b);
  b.ucp.ucp_rkey_destroy(c.key);
  c.key = nullptr;
  require(c.p.close_and_wait(c.ep, false), "an endpoint did not close");
  c.ep = nullptr;
  c.p.progress_until([&] { return b.shared.errors.load() != 0; }, second);
  answer(b, b.shared.errors.load() == 0 ? "is not told" : "is told by its error handler");
  c.end();
}

void flushed_stopped(bench& b) {
  client c(b);
  b.strike(blow::stop);
  outcome got, closed;
  c.get(page, got);
  const ucs_status_ptr_t request = c.p.close(c.ep, false, closed);
  c.p.progress_until([&] { return closed.ended(); }, 1'500 * ms);
  answer(b, closed.ended() ? "ends" : "does not end");
  // Over tcp the library aborts if the worker is destroyed now (destroy_outstanding_stopped).
  b.strike(blow::go_on);
  require(c.p.progress_until([&] { return got.ended() && closed.ended(); }), "it did not end with the peer's return");
  static_cast<void>(request);
  b.ucp.ucp_rkey_destroy(c.key);
  c.key = nullptr;
  c.ep = nullptr;
  c.end();
}

void destroyed_with(bench& b, blow how) {
  client c(b);
  b.strike(how);
  outcome got;
  c.get(page, got);
  c.p.destroy_worker();
  const int calls = got.calls;
  answer(b, "returns; the GET %s", calls == 0 ? "is not called back" : "is called back");
  c.release_memory();
  c.p.end();
  if (how == blow::stop) b.strike(blow::go_on);
}
void destroyed_stopped(bench& b) { destroyed_with(b, blow::stop); }
void destroyed_dead(bench& b) { destroyed_with(b, blow::kill); }

void destroyed_forced(bench& b) {
  client c(b);
  b.strike(blow::stop);
  outcome got, closed;
  c.get(page, got);
  const ucs_status_ptr_t request = c.p.close(c.ep, true, closed);
  if (UCS_PTR_IS_PTR(request)) b.ucp.ucp_request_free(request);
  c.p.destroy_worker();
  answer(b, "returns; the GET %s", got.calls == 0 ? "is not called back" : "was called back");
  c.release_memory();
  c.p.end();
  b.strike(blow::go_on);
}

void destroyed_flushing(bench& b) {
  client c(b);
  b.ucp.ucp_rkey_destroy(c.key);
  c.key = nullptr;
  b.strike(blow::stop);
  outcome closed;
  const ucs_status_ptr_t request = c.p.close(c.ep, false, closed);
  c.p.progress_for(100 * ms);
  if (!closed.ended()) b.ucp.ucp_request_free(request);
  c.p.destroy_worker();
  answer(b, "returns");
  c.release_memory();
  c.p.end();
  b.strike(blow::go_on);
}

void flushed_idle_stopped(bench& b) {
  client c(b);
  b.ucp.ucp_rkey_destroy(c.key);
  c.key = nullptr;
  b.strike(blow::stop);
  outcome closed;
  const ucs_status_ptr_t request = c.p.close(c.ep, false, closed);
  c.p.progress_until([&] { return closed.ended(); }, 500 * ms);
  answer(b, closed.ended() ? "ends" : "does not end");
  if (!closed.ended()) b.ucp.ucp_request_free(request);
  c.p.destroy_worker();
  c.release_memory();
  c.p.end();
  b.strike(blow::go_on);
}

void destroyed_open(bench& b) {
  client c(b);
  b.ucp.ucp_rkey_destroy(c.key);
  c.p.destroy_worker();
  answer(b, "returns");
  c.release_memory();
  c.p.end();
}

void handler_after_close(bench& b) {
  client c(b);
  b.ucp.ucp_rkey_destroy(c.key);
  c.key = nullptr;
  outcome closed;
  c.p.close(c.ep, true, closed);
  c.ep = nullptr;
  b.strike(blow::kill);
  c.p.progress_for(500 * ms);
  answer(b, c.p.errors == 0 ? "does not run" : "runs");
  c.release_memory();
  c.p.end();
}

/// A process as core makes one for lanes through memory, with two endpoints to one of the owner, which has two to it
/// and reads through them.
struct mirrored {
  explicit mirrored(bench& b) : of(b), p(b, "posix") {
    while (b.shared.ready.load() == 0) b.sleep_ns(ms);
    base = b.pages(offered_bytes);
    memory = p.map(base, offered_bytes);
    p.pack(memory, b.shared.back_key);
    b.shared.back_address = reinterpret_cast<std::uint64_t>(base);
    b.shared.back_worker_bytes = static_cast<std::uint32_t>(p.worker_address(b.shared.back_worker));
    ask(command::mirror);
    for (ucp_ep_h* const ep : {&first, &second}) {
      *ep = p.connect_worker(std::span(b.shared.worker).first(b.shared.worker_bytes), false);
      require(p.created == UCS_OK, "no endpoint");
    }
  }
  void ask(command what) {
    of.shared.what.store(what);
    const std::uint32_t number = of.shared.asked.fetch_add(1) + 1;
    require(p.progress_until([&] { return of.shared.done.load() == number; }),
            "the owner did not do what it was asked");
  }
  bool read(std::uint32_t in_all, std::int64_t within_ns = 1'500 * ms) {
    return p.progress_until([&] { return of.shared.reads.load() == in_all; }, within_ns);
  }
  void end() {
    ask(command::stop);
    p.unmap(memory);
    of.give_back(base, offered_bytes);
    p.end();
  }

  bench& of;
  process p;
  std::byte* base = nullptr;
  ucp_mem_h memory = nullptr;
  ucp_ep_h first = nullptr;
  ucp_ep_h second = nullptr;
};

void read_after(bench& b) {
  mirrored m(b);
  m.ask(command::read_first);
  require(m.read(1), "a read of the owner did not end");
  require(m.p.close_and_wait(m.first, false), "an endpoint did not close");
  m.ask(command::read_first);
  answer(b, m.read(2) ? "is answered" : "is not answered");
  m.end();
}

void read_while(bench& b) {
  mirrored m(b);
  m.ask(command::read_first);
  require(m.read(1), "a read of the owner did not end");
  m.ask(command::flood);
  m.p.progress_for(20 * ms);  // serves as much as the owner's queue takes
  outcome closed;
  m.p.close(m.second, false, closed);
  m.ask(command::read_second);
  m.p.progress_for(20 * ms);
  m.ask(command::serve);
  const bool one = m.read(18) && m.p.progress_until([&] { return closed.ended(); });
  m.ask(command::read_second);
  answer(b, one && m.read(19) ? "is answered" : "is not answered");
  m.end();
}

constexpr probe probes[] = {
    {"close_flush", "F5", "A flush-close towards a peer that progresses:", over_both, rule::same, "clean close (7.8)",
     "", &flushed},
    {"close_flush_peer", "F5", "The peer of a flush-close", over_tcp, rule::same, "loss of a peer (7.7)", "",
     &flushed_told},
    {"close_flush_idle", "F7", "A flush-close with nothing outstanding, at a stopped peer,", over_both, rule::may, "",
     "", &flushed_idle_stopped},
    {"close_flush_stopped", "F7", "A flush-close with a GET outstanding at a stopped peer", over_both, rule::same,
     "close_timeout (4.5)", "", &flushed_stopped},
    {"close_force_none", "F8", "A forced close without error mode answers", through_memory, rule::same,
     "parked endpoints (4.5)", "", &forced_without_mode},
    {"close_force_posted", "F9", "A forced close with a GET outstanding", over_tcp, rule::same,
     "no close is a fence (7.12)", "", &forced_posted},
    {"close_no_handler", "F5", "After a local close the error handler, when the peer dies,", over_tcp, rule::same,
     "one loss for each connection (TP-I19)", "", &handler_after_close},
    {"destroy_flushing", "4.5", "Destroying a worker under a flush-close that waits, its request given back,",
     over_both, rule::same, "the end of a teardown (7.13)", "", &destroyed_flushing},
    {"destroy_forced", "F10", "Destroying a worker after a forced close under a GET, without a progress between,",
     over_tcp, rule::same, "the end of a teardown (7.13)", "", &destroyed_forced},
    {"destroy_open", "4.5", "Destroying a worker with an endpoint that was never closed", over_both, rule::same,
     "parked endpoints (4.5)", "", &destroyed_open},
    {"destroy_outstanding_dead", "F10", "Destroying a worker with a GET outstanding at a dead peer", through_memory,
     rule::same, "the sweep (7.13)", "", &destroyed_dead},
    {"destroy_outstanding_stopped", "F10", "Destroying a worker with a GET outstanding at a stopped peer", over_both,
     rule::same, "the sweep (7.13)", "returns; the GET is not called back", &destroyed_stopped},
    {"key_after_force", "F30", "Destroying a key after a forced close under its GET, when that GET ended", over_tcp,
     rule::same, "keys in use at a force-close (4.8)", "", &key_after_forced},
    {"read_after_close", "F14", "A GET of a peer that names an endpoint which was flushed and closed", through_memory,
     rule::forbidden, "nothing: never done (decision 51)", "", &read_after},
    {"read_while_closing", "F14", "The same, when the peer's first request came while the close was waiting for room,",
     through_memory, rule::forbidden, "nothing: never done (decision 51)", "", &read_while},
};

}  // namespace

std::span<const probe> endpoint_probes() { return probes; }

}  // namespace holdfast::driver_probe
