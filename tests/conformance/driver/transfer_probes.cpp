// GETs and keys (F3, F14, F15).
#include "process.hpp"

#include <algorithm>

namespace holdfast::driver_probe {

namespace {

void exits(bench& b) {
  client c(b);
  unsigned inlined = 0, posted = 0;
  bool one_call = true;
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{256}, page, 32 * page}) {
    outcome got;
    const ucs_status_ptr_t handed = c.p.get(c.ep, c.to, bytes, b.shared.address, c.key, got);
    if (UCS_PTR_IS_PTR(handed)) {
      ++posted;
      require(c.p.progress_until([&] { return got.ended(); }), "a GET did not end");
      c.p.progress_for(2 * ms);
      if (got.calls != 1) one_call = false;
    } else {
      require(handed == nullptr, "a GET was refused");
      ++inlined;
      c.p.progress_for(2 * ms);
      if (got.calls != 0) one_call = false;
    }
  }
  answer(b, "%s", !one_call ? "a wrong number of callbacks" : "one callback for a request, none without");
  c.end();
}

void inline_seen(bench& b) {
  client c(b);
  unsigned inlined = 0;
  for (int i = 0; i < 20; ++i) {
    outcome got;
    if (c.p.get(c.ep, c.to, 64, b.shared.address, c.key, got) == nullptr) ++inlined;
    require(c.p.progress_until([&] { return got.ended(); }), "a GET did not end");
  }
  answer(b, inlined == 0 ? "requests alone" : "requests and ends inside the call");
  c.end();
}

void bytes_there(bench& b) {
  client c(b);
  bool all = true;
  for (int i = 0; i < 20; ++i) {
    for (const std::size_t bytes : {std::size_t{8}, page, 32 * page}) {
      c.clear();
      if (!c.get_and_wait(bytes) || !c.right(bytes)) all = false;
    }
  }
  answer(b, all ? "there, all of them" : "not all there");
  c.end();
}

void nothing(bench& b) {
  client c(b);
  outcome got;
  const ucs_status_ptr_t handed = c.p.get(c.ep, c.to, 0, b.shared.address, c.key, got);
  require(c.p.progress_until([&] { return got.ended(); }), "it did not end");
  answer(b, "%s", handed == nullptr ? "ends inside the call" : "is a request");
  c.end();
}

void quiet_owner(bench& b) {
  client c(b);
  c.ask(command::rest);
  outcome got;
  c.get(page, got);
  const bool early = c.p.progress_until([&] { return got.ended(); }, 200 * ms);
  c.ask(command::serve);
  const bool late = c.p.progress_until([&] { return got.ended(); });
  answer(b, early ? "ends" : late ? "waits for the owner's progress" : "does not end at all");
  c.end();
}

void unmapped_at_owner(bench& b) {
  client c(b);
  c.ask(command::unmap);
  c.clear();
  ucs_status_t status = UCS_INPROGRESS;
  const bool ended = c.get_and_wait(page, &status);
  answer(b, !ended             ? "does not end"
            : status != UCS_OK ? "fails"
            : c.right(page)    ? "brings the bytes"
                               : "brings other bytes");
  c.end();
}

void foreign_range(bench& b) {
  client c(b);
  // The other half of the pages: never registered.
  outcome got;
  c.p.get(c.ep, c.to, page, b.shared.address + offered_bytes / 2, c.key, got);
  const bool ended = c.p.progress_until([&] { return got.ended(); });
  bool right = true;
  for (std::size_t i = 0; i < page; ++i) right = right && c.to[i] == pattern(i + offered_bytes / 2);
  answer(b, !ended                 ? "does not end"
            : got.status != UCS_OK ? "fails"
            : right                ? "brings the bytes"
                                   : "brings other bytes");
  c.end();
}

void closed_at_owner(bench& b) {
  client c(b);
  c.ask(command::rest);
  outcome got;
  c.get(page, got);
  // The request is there, and nobody looked.
  b.sleep_ns(20 * ms);
  outcome closed;
  c.p.close(c.ep, true, closed);
  c.ep = nullptr;
  require(c.p.progress_until([&] { return got.ended() && closed.ended(); }), "it did not end");
  b.ucp.ucp_rkey_destroy(c.key);
  c.key = nullptr;
  c.clear();
  c.ask(command::serve);
  c.p.progress_for(100 * ms);
  bool clean = true;
  for (std::size_t i = 0; i < page; ++i) clean = clean && c.to[i] == std::byte{0};
  answer(b, clean ? "writes nothing" : "writes");
  c.end();
}

bool unpack_to(client& c, ucp_rkey_h& key) {
  return c.of.ucp.ucp_ep_rkey_unpack(c.ep, c.of.shared.key.data(), &key) == UCS_OK;
}

void fresh_key(bench& b) {
  client c(b);
  c.ask(command::map_again);
  ucp_rkey_h fresh = nullptr;
  require(unpack_to(c, fresh), "no key");
  b.ucp.ucp_rkey_destroy(c.key);
  c.key = fresh;
  c.clear();
  answer(b, c.get_and_wait(page) && c.right(page) ? "brings the bytes" : "does not");
  c.end();
}

void equal_keys(bench& b, command how) {
  client c(b);
  const auto before = b.shared.key;
  const std::uint32_t bytes = b.shared.key_bytes;
  c.ask(how);
  const bool equal =
      bytes == b.shared.key_bytes && std::equal(before.begin(), before.begin() + bytes, b.shared.key.begin());
  answer(b, equal ? "equal" : "different");
  c.end();
}
void equal_again(bench& b) { equal_keys(b, command::map_again); }
void equal_other(bench& b) { equal_keys(b, command::map_other); }

void key_of_nothing(bench& b) {
  client c(b);
  std::array<std::byte, 512> bad{};
  for (std::size_t i = 0; i < 64; ++i) bad[i] = std::byte{0};
  ucp_rkey_h key = nullptr;
  const ucs_status_t status = b.ucp.ucp_ep_rkey_unpack(c.ep, bad.data(), &key);
  answer(b, status == UCS_OK ? "accepted" : "refused");
  if (status == UCS_OK) b.ucp.ucp_rkey_destroy(key);
  c.end();
}

void two_at_once(bench& b) {
  client c(b);
  outcome ends[8];
  c.clear();
  for (std::size_t i = 0; i < 8; ++i) {
    c.p.get(c.ep, c.to + i * page, page, b.shared.address + i * page, c.key, ends[i]);
  }
  require(c.p.progress_until([&] { return std::ranges::all_of(ends, &outcome::ended); }), "they did not end");
  answer(b, c.right(8 * page) ? "each its own bytes" : "mixed up");
  c.end();
}

constexpr probe probes[] = {
    {"get_bytes", "F3", "When a GET ended with success its bytes are", over_both, rule::same, "TP-I2, W-9", "",
     &bytes_there},
    {"get_closed", "F14", "A reply to a GET whose endpoint was closed with force, when it comes,", over_tcp, rule::same,
     "a forced close's callbacks are the fence (7.12)", "", &closed_at_owner},
    {"get_exits", "F3", "A GET calls back", over_both, rule::same, "the four exits (4.6)", "", &exits},
    {"get_inline", "F3", "GETs of 64 bytes are", over_both, rule::may, "", "", &inline_seen},
    {"get_no_key_check", "F14", "A GET of memory that its owner deregistered and kept", over_both, rule::same,
     "tombstones (7.20)", "", &unmapped_at_owner},
    {"get_nothing", "7.10", "A GET of no bytes", over_both, rule::may, "", "", &nothing},
    {"get_parallel", "F3", "Eight GETs at once bring", over_both, rule::same, "several operations for each peer", "",
     &two_at_once},
    {"get_quiet_owner", "F14", "A GET whose owner does not progress", over_both, rule::same,
     "lanes count as emulated (7.6)", "", &quiet_owner},
    {"get_range", "F14", "A GET beside the registered range, of pages that the owner has,", over_both, rule::same,
     "references are trusted, not keys (7.20)", "", &foreign_range},
    {"key_again", "7.9", "Keys of one range, registered, deregistered and registered again, are", over_both, rule::may,
     "", "", &equal_again},
    {"key_fresh", "7.9", "A GET with the key of a second registration of the same range", over_both, rule::same,
     "key cache by incarnation and generation (7.9)", "", &fresh_key},
    {"key_other", "7.9", "Keys of two ranges that are registered at once are", over_both, rule::may, "", "",
     &equal_other},
    {"key_zeros", "7.9", "A key of 64 zero bytes is", over_both, rule::may, "", "", &key_of_nothing},
};

}  // namespace

std::span<const probe> transfer_probes() { return probes; }

}  // namespace holdfast::driver_probe
