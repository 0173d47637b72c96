// Active messages (F17, F18, 7.1).
#include "process.hpp"

namespace holdfast::driver_probe {

namespace {

void before_connected(bench& b) {
  process p(b);
  while (b.shared.ready.load() == 0) b.sleep_ns(ms);
  const ucp_ep_h ep = p.connect_owner();
  require(p.created == UCS_OK, "no endpoint");
  outcome sent;
  const ucs_status_ptr_t handed = p.send(ep, 7, "early", 5, sent, UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY);
  const bool came = p.progress_until([&] { return sent.ended() && b.shared.messages.load() == 1; });
  answer(b, "%s; it %s", UCS_PTR_IS_ERR(handed) ? "refused" : "taken", came ? "comes" : "does not come");
  require(p.close_and_wait(ep, !b.over_memory), "an endpoint did not close");
  b.shared.what.store(command::stop);
  const std::uint32_t number = b.shared.asked.fetch_add(1) + 1;
  require(p.progress_until([&] { return b.shared.done.load() == number; }), "the owner did not end");
  p.end();
}

void early_exit(bench& b) {
  process p(b);
  while (b.shared.ready.load() == 0) b.sleep_ns(ms);
  const ucp_ep_h ep = p.connect_owner();
  require(p.created == UCS_OK, "no endpoint");
  outcome sent;
  const ucs_status_ptr_t handed = p.send(ep, 7, "early", 5, sent, UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY);
  answer(b, UCS_PTR_IS_PTR(handed) ? "a request" : "no request");
  require(p.progress_until([&] { return sent.ended() && b.shared.messages.load() == 1; }), "it did not come");
  require(p.close_and_wait(ep, !b.over_memory), "an endpoint did not close");
  b.shared.what.store(command::stop);
  const std::uint32_t number = b.shared.asked.fetch_add(1) + 1;
  require(p.progress_until([&] { return b.shared.done.load() == number; }), "the owner did not end");
  p.end();
}

void reply_endpoint(bench& b) {
  client c(b);
  c.ask(command::send);
  require(c.p.progress_until([&] { return c.p.messages != 0; }), "no message");
  const bool mine = c.p.last_reply == c.ep;
  const bool theirs = b.shared.replies_known.load() != 0 && b.shared.replies_other.load() == 0;
  answer(b, "the accepted endpoint there: %s; the connected endpoint here: %s", theirs ? "yes" : "no",
         mine ? "yes" : "no");
  c.end();
}

void reply_absent(bench& b) {
  client c(b);
  const std::uint32_t before = b.shared.replies_known.load() + b.shared.replies_other.load();
  const std::uint32_t messages = b.shared.messages.load();
  outcome sent;
  c.p.send(c.ep, 7, "word", 4, sent, UCP_AM_SEND_FLAG_EAGER);
  require(c.p.progress_until([&] { return b.shared.messages.load() != messages && sent.ended(); }), "no message");
  c.p.progress_for(5 * ms);
  answer(b, b.shared.replies_known.load() + b.shared.replies_other.load() == before ? "not named" : "named");
  c.end();
}

void unknown_id(bench& b) {
  client c(b);
  const std::uint32_t messages = b.shared.messages.load();
  outcome sent;
  c.p.send(c.ep, 99, "word", 4, sent, UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY);
  require(c.p.progress_until([&] { return sent.ended(); }), "it did not end");
  outcome after;
  c.p.send(c.ep, 7, "word", 4, after, UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY);
  require(c.p.progress_until([&] { return b.shared.messages.load() != messages; }), "the next message did not come");
  require(c.p.progress_until([&] { return after.ended(); }), "the next message did not end");
  answer(b, "%s at the sender; dropped", sent.status == UCS_OK ? "success" : "an error");
  c.end();
}

void descriptor(bench& b) {
  client c(b);
  b.shared.refuse_descriptors.store(1);
  c.p.progress_for(5 * ms);
  outcome sent;
  c.p.send(c.ep, 7, c.to, 64 * 1024, sent, UCP_AM_SEND_FLAG_RNDV | UCP_AM_SEND_FLAG_REPLY);
  const bool ended = c.p.progress_until([&] { return sent.ended(); });
  const bool as_descriptor = c.p.progress_until([&] { return b.shared.descriptors.load() != 0; });
  answer(b, "%s; refused, the send ends with %s", as_descriptor ? "a descriptor" : "data",
         !ended                            ? "nothing"
         : sent.status == UCS_OK           ? "success"
         : sent.status == UCS_ERR_REJECTED ? "that status"
                                           : "another error");
  c.end();
}

void eager_is_data(bench& b) {
  client c(b);
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{512}, page, 16 * std::size_t{1024}}) {
    const std::uint32_t messages = b.shared.messages.load();
    outcome sent;
    c.p.send(c.ep, 7, c.to, bytes, sent, UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY);
    require(c.p.progress_until([&] { return b.shared.messages.load() != messages && sent.ended(); }), "no message");
  }
  answer(b, b.shared.descriptors.load() == 0 ? "data" : "a descriptor");
  c.end();
}

void header_room(bench& b) {
  process p(b);
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  require(b.ucp.ucp_worker_query(p.worker, &attributes) == UCS_OK, "no answer");
  answer(b, attributes.max_am_header >= 64 ? "64 bytes or more" : "less than 64 bytes");
  p.end();
}

constexpr probe probes[] = {
    {"message_descriptor", "F18", "A message sent by rendezvous arrives as", over_both, rule::same,
     "descriptors are refused (7.15)", "", &descriptor},
    {"message_eager", "F18", "Messages up to 16 KiB that are sent eager arrive as", over_both, rule::same,
     "control messages (7.14)", "", &eager_is_data},
    {"message_early", "7.5", "A message sent before the connection stands is", over_both, rule::same,
     "hello is the first message (7.5)", "", &before_connected},
    {"message_early_exit", "7.5", "Sending before the connection stands answers", over_both, rule::may, "", "",
     &early_exit},
    {"message_header", "7.1", "Room for a header of messages:", over_both, rule::same, "start-up (7.1)", "",
     &header_room},
    {"message_reply", "7.5", "The reply endpoint of a message is", over_tcp, rule::same,
     "the wire knows its endpoints by handle", "", &reply_endpoint},
    {"message_reply_flag", "7.5", "The reply endpoint of a message sent without the flag is", over_both, rule::same,
     "the wire asks for it", "", &reply_absent},
    {"message_unknown", "F17", "A message with an id that nobody registered:", over_both, rule::same,
     "handlers stay to the end (7.15)", "", &unknown_id},
};

}  // namespace

std::span<const probe> message_probes() { return probes; }

}  // namespace holdfast::driver_probe
