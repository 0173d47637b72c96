#include <holdfast/platform/abi.hpp>

#include "smoke/pattern.hpp"
#include "smoke/ucx_stage.hpp"

#include <algorithm>
#include <deque>

namespace holdfast::smoke {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t mebi = std::uint64_t{1} << 20;

std::uint64_t posted(node& own) { return own.peers().snapshot().operations.posted; }

bool touches(std::span<const std::byte> a, const std::byte* from, std::size_t bytes) {
  return a.data() < from + bytes && from < a.data() + a.size();
}

// ---- Cancelled ------------------------------------------------------------------------------------------------------

std::string cancelled(ucx_stage& stage, peer_process& peer, std::string& figure) {
  node& own = *stage.own;
  const std::uint64_t bytes = std::min<std::uint64_t>(stage.with.given.bytes, 4 * mebi);
  auto got = own.alloc(bytes);
  if (!got) return got.error();
  // Where it is, for comparing addresses. From here on nobody of ours reads or writes there.
  const std::byte* const room = got->bytes().data();

  // A peer that stands still cannot answer: the GET is in flight for as long as we like.
  if (!peer.stop()) return "the peer is gone";
  pending_get get(own, peer, 0, bytes, std::move(*got));
  if (!eventually([&] { return posted(own) > 0; }, 10s)) return "the GET was not posted within 10 s";
  const steady::time_point asked = steady::now();
  get.cancel();
  if (!get.wait(10s)) return "the waiter was not told within 10 s of the cancellation";
  const auto told = get.failure();
  if (!told || told->code != error_code::cancelled) return "the waiter was told something else than cancelled";
  if (own.memory().in_flight_transfers() == 0) return "the transfer is not counted any more, though it goes on";

  // Others take what room there is: none of it may be the room that is still written.
  std::vector<pinned::buffer> others;
  for (std::uint64_t i = 0; i < 4; ++i) {
    auto other = own.alloc(bytes);
    if (!other) return other.error();
    if (touches(other->bytes(), room, bytes)) return "room was given away while a GET may still write it";
    write_pattern(other->bytes(), 1000 + i);
    others.push_back(std::move(*other));
  }
  peer.resume();
  if (!eventually([&] { return own.memory().in_flight_transfers() == 0; }, patience))
    return "the cancelled transfer did not end after the peer went on";
  const std::int64_t held_ns = (steady::now() - asked).count();
  for (std::uint64_t i = 0; i < others.size(); ++i)
    if (first_wrong(others[i].bytes(), 1000 + i)) return "a cancelled GET wrote into somebody else's buffer";

  // Now the room is free. Whoever gets it keeps every byte, also while the same peer goes on sending.
  std::optional<pinned::buffer> tenant;
  if (!eventually(
          [&] {
            auto again = own.memory().try_alloc(bytes);
            if (!again) return false;
            if (again->bytes().data() == room)
              tenant.emplace(std::move(*again));
            else
              others.push_back(std::move(*again));
            return tenant.has_value();
          },
          10s))
    return "the room of the cancelled GET did not come back within 10 s";
  write_pattern(tenant->bytes(), 2000);
  auto into = own.alloc(bytes);
  if (!into) return into.error();
  pending_get after(own, peer, 0, bytes, std::move(*into));
  if (!after.wait(patience)) return "a GET after the cancelled one did not end";
  if (const auto why = after.failure()) return "a GET after the cancelled one failed: " + sentence(*why);
  if (std::string wrong = after.wrong_bytes(); !wrong.empty()) return wrong;
  if (first_wrong(tenant->bytes(), 2000)) return "the next tenant of the room lost a byte";
  figure = "told after " + time_text(get.took_ns() - (asked - get.began()).count()) + ", " + bytes_text(bytes) +
           " held for " + time_text(held_ns) +
           " until the peer went on, then the room was used again, every byte checked";
  return {};
}

// ---- Killed ---------------------------------------------------------------------------------------------------------

constexpr int attempts = 4;

struct death {
  std::string wrong;   // empty: as it should be
  std::string figure;  // empty: everything was over before the peer died
};

// Answers come in the order of the requests: when the small GET in front is over, bytes of the others are on their way.
// Then the peer is stopped and killed. What the system had buffered may still end them all, so there are attempts; in
// the last one the peer stands still from the beginning, and every GET is under way.
//
// What a waiter is told depends on the lane. Over tcp the library calls back: the GET failed, and the buffer is back.
// Through shared memory it never does: the control connection reports the death, the fate of the bytes is unknown, and
// nobody gets their room before the worker is gone.
death killed_once(ucx_stage& stage, bool standing) {
  constexpr std::size_t at_once = 8;
  node& own = *stage.own;
  const std::uint64_t bytes = std::min<std::uint64_t>(stage.with.given.bytes, 16 * mebi);
  auto peer = stage.start_peer(bytes);
  if (!peer) return {peer.error(), {}};
  std::vector<pinned::buffer> buffers;
  for (std::size_t i = 0; i < at_once; ++i) {
    auto got = own.alloc(bytes);
    if (!got) return {got.error(), {}};
    buffers.push_back(std::move(*got));
  }
  if (standing && !(*peer)->stop()) return {"the peer is gone", {}};
  std::deque<pending_get> gets;
  for (pinned::buffer& one : buffers)
    gets.emplace_back(own, **peer, 0, gets.empty() ? std::min<std::uint64_t>(bytes, 64) : bytes, std::move(one));
  if (standing && !eventually([&] { return posted(own) > 0; }, 10s))
    return {"the GETs were not posted within 10 s", {}};
  if (!standing && !gets.front().wait(patience)) return {"a GET did not end", {}};
  if (!(*peer)->stop()) return {"the peer is gone", {}};
  const steady::time_point when = steady::now();
  (*peer)->kill();

  const bool through_memory = own.peers().found().shares_memory;
  std::size_t failures = 0;
  std::int64_t latest_ns = 0;
  std::string code;
  for (pending_get& get : gets) {
    if (!get.wait_until(when + 5s)) return {"a GET is still pending 5 s after its peer was killed", {}};
    if (const auto why = get.failure()) {
      const bool expected = through_memory
                                ? why->code == error_code::indeterminate
                                : why->code == error_code::peer_lost || why->code == error_code::transfer_failed;
      if (!expected) return {"a GET ended with something else: " + sentence(*why), {}};
      if (static_cast<bool>(get.take_buffer()) == through_memory)
        return {through_memory ? "a GET of unknown fate gave its buffer back" : "a failed GET kept its buffer", {}};
      code = name_of(why->code);
      latest_ns = std::max(latest_ns, (get.ended_at() - when).count());
      ++failures;
    } else if (std::string wrong = get.wrong_bytes(); !wrong.empty()) {
      return {std::move(wrong), {}};
    }
  }
  if (!eventually([&] { return !own.peers().is_ready((*peer)->offered().who); }, 5s))
    return {"the peer still counts as connected", {}};
  if (through_memory) {
    // A callback that comes after all ends one of them; the others stay counted until the worker's end.
    stage.held += failures;
    if (!eventually([&] { return own.memory().in_flight_transfers() == own.peers().snapshot().operations.orphaned; },
                    5s))
      return {"transfers are counted that nobody holds", {}};
    if (own.memory().in_flight_transfers() > stage.held) return {"more transfers are held than have no fate", {}};
  } else if (!eventually([&] { return own.memory().in_flight_transfers() == 0; }, 5s)) {
    return {"transfers are still counted", {}};
  }
  if (failures == 0) return {};
  return {{},
          std::to_string(failures) + " of " + std::to_string(gets.size()) + " GETs of " + bytes_text(bytes) +
              (through_memory ? " through shared memory" : " over tcp") + " ended with " + code + " within " +
              time_text(latest_ns) + (through_memory ? ", their room is held" : "") +
              (failures < gets.size() ? ", the others with every byte" : "")};
}

death killed(ucx_stage& stage) {
  death found;
  for (int i = 0; i < attempts && found.wrong.empty() && found.figure.empty(); ++i)
    found = killed_once(stage, i + 1 == attempts);
  if (found.wrong.empty() && found.figure.empty())
    found.wrong = "GETs from a peer that stood still ended without failure";
  return found;
}

// ---- Stopped --------------------------------------------------------------------------------------------------------

std::string stopped(ucx_stage& stage) {
  node& own = *stage.own;
  const std::uint64_t bytes = std::min<std::uint64_t>(stage.with.given.bytes, mebi);
  auto peer = stage.start_peer(bytes);
  if (!peer) return peer.error();
  auto got = own.alloc(bytes);
  if (!got) return got.error();
  if (!(*peer)->stop()) return "the peer is gone";
  pending_get get(own, **peer, 0, bytes, std::move(*got));
  if (!eventually([&] { return posted(own) > 0; }, 10s)) return "the GET was not posted within 10 s";
  if (get.wait(1s)) return "a GET ended though its peer stands still";
  const auto counted = own.memory().snapshot();
  std::uint64_t holds = 0;
  for (const auto& arena : counted.arenas) holds += arena.holds;
  if (counted.pool.in_flight != 1 || counted.gate.transfers != 1 || holds != 1 || posted(own) != 1)
    return "the pending GET is not counted: " + counted.to_json();
  stage.ok("peer stopped", "after 1 s the GET is pending, held and counted: 1 transfer, 1 hold, " +
                               bytes_text(counted.budget.registered_bytes) + " stay registered");

  constexpr auto deadline = 3s;
  const auto ended = own.shut_down(deadline, patience);
  stage.with.record.add("ucx-stopped", own.events());
  if (!ended) return ended.error();
  // What is due at the deadline may be late by what a busy machine needs to run it.
  if (std::chrono::nanoseconds(ended->took_ns) > deadline + 2s)
    return "the shutdown took " + time_text(ended->took_ns) + " of 3 s";
  const runtime_report& report = ended->report;
  if (report.pinned.transfers_outstanding != 1 || report.pinned.arenas_not_submitted != 1)
    return "the report does not name the pending GET and its arena: " + report.to_json();
  if (!report.clean()) return "something is left: " + report.to_json();
  if (!get.wait(5s)) return "nobody told the waiter";
  if (!get.failure()) return "a GET from a standing peer reports success";
  if (const operations_seen seen = look_at_operations(own); !seen.wrong.empty()) return seen.wrong;
  stage.ok("shutdown, GET stuck", "returned after " + time_text(ended->took_ns) +
                                      " of 3 s; its report names 1 GET and 1 arena, held until the worker was gone; "
                                      "0 bytes registered");
  return {};
}

}  // namespace

void check_cancelled(ucx_stage& stage) {
  constexpr std::string_view name = "cancel in flight";
  peer_process& peer = *stage.peers.front();
  std::string figure;
  const std::string wrong = cancelled(stage, peer, figure);
  peer.resume();
  wrong.empty() ? stage.ok(name, std::move(figure)) : stage.failed(name, wrong);
}

void check_killed(ucx_stage& stage, std::string_view name) {
  death found = killed(stage);
  found.wrong.empty() ? stage.ok(name, std::move(found.figure)) : stage.failed(name, std::move(found.wrong));
}

void check_stopped(ucx_stage& stage) {
  const std::string wrong = stopped(stage);
  if (!wrong.empty()) stage.failed("peer stopped", wrong);
}

void check_end(ucx_stage& stage, std::string_view name, std::string_view recorded) {
  const std::uint64_t arenas = stage.own->memory().arena_count();
  const auto ended = stage.own->shut_down(5s, patience);
  stage.with.record.add(recorded, stage.own->events());
  if (!ended) return stage.failed(name, ended.error());
  const runtime_report& report = ended->report;
  const pinned::shutdown_report& memory = report.pinned;
  if (!report.clean()) return stage.failed(name, "not clean: " + report.to_json());
  // An arena with a GET of unknown fate in it waits for the end of the worker, and only such a one.
  if (memory.transfers_outstanding > stage.held || memory.arenas_not_submitted > memory.transfers_outstanding ||
      memory.arenas_confirmed + memory.arenas_not_submitted < arenas)
    return stage.failed(name, "arenas were kept that no GET held: " + report.to_json());
  stage.ok(name, std::to_string(memory.arenas_confirmed) + " arenas given back" +
                     (memory.arenas_not_submitted == 0 ? std::string()
                                                       : ", " + std::to_string(memory.arenas_not_submitted) +
                                                             " with the worker's end, which ended " +
                                                             count_text(memory.transfers_outstanding, "GET")) +
                     " in " + time_text(ended->took_ns) + " of 5 s");
  const operations_seen seen = look_at_operations(*stage.own);
  const std::string books = name == shutdown_row ? "books" : "books, tcp";
  if (!seen.wrong.empty()) return stage.failed(books, seen.wrong);
  stage.ok(books, std::to_string(report.bytes_registered) + " bytes registered; each of the last " +
                      std::to_string(seen.ended) + " operations ended once");
}

}  // namespace holdfast::smoke
