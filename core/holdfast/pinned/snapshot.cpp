#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/snapshot.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/pinned/core.hpp>

#include <cstdio>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::pinned {

namespace {

arena_snapshot describe(arena& one) {
  const arena::numbers n = one.observe();
  return {one.generation(),
          n.state,
          std::uint64_t{n.granules} * granule_bytes,
          one.charge_bytes(),
          one.dedicated(),
          n.live,
          n.in_flight,
          n.quarantined_granules * granule_bytes,
          n.free_granules * granule_bytes,
          std::uint64_t{n.largest_free} * granule_bytes,
          n.unmap,
          n.unmap_attempts,
          n.empty_since_ns,
          n.retired_ns,
          n.why_retired};
}

std::string_view name_of(arena_state state) noexcept {
  constexpr std::string_view names[] = {"building", "published", "retiring"};
  return names[static_cast<std::size_t>(state)];
}

std::string_view name_of(unmap_progress progress) noexcept {
  constexpr std::string_view names[] = {"none", "submitted", "confirmed", "refused", "unknown", "withheld"};
  return names[static_cast<std::size_t>(progress)];
}

std::string_view name_of(retire_reason reason) noexcept {
  constexpr std::string_view names[] = {"reclaim", "shutdown", "cancelled", "closed", "failed", "pressure"};
  return names[static_cast<std::size_t>(reason)];
}

class json_text {
 public:
  json_text& open(std::string_view name, char bracket) {
    key(name);
    text_ += bracket;
    first_ = true;
    return *this;
  }
  json_text& close(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
  }
  json_text& number(std::string_view name, std::uint64_t value) {
    key(name);
    text_ += std::to_string(value);
    return *this;
  }
  /// `reclaim_never` is null.
  json_text& milliseconds(std::string_view name, std::int64_t ns) {
    key(name);
    text_ += ns == reclaim_never ? "null" : std::to_string(ns / 1'000'000);
    return *this;
  }
  json_text& flag(std::string_view name, bool value) {
    key(name);
    text_ += value ? "true" : "false";
    return *this;
  }
  json_text& word(std::string_view name, std::string_view value) {
    key(name);
    text_.append("\"").append(value).append("\"");
    return *this;
  }
  std::string take() { return std::move(text_); }

 private:
  void key(std::string_view name) {
    if (!first_) text_ += ", ";
    first_ = false;
    if (!name.empty()) text_.append("\"").append(name).append("\": ");
  }
  std::string text_;
  bool first_ = true;
};

void write_arenas(json_text& json, std::string_view name, const std::vector<arena_snapshot>& arenas) {
  json.open(name, '[');
  for (const arena_snapshot& one : arenas) {
    json.open("", '{')
        .number("generation", one.generation)
        .word("state", name_of(one.state))
        .number("size", one.size_bytes)
        .number("charge", one.charge_bytes)
        .flag("dedicated", one.dedicated)
        .number("live", one.live)
        .number("holds", one.holds)
        .number("quarantined_bytes", one.quarantined_bytes)
        .number("free", one.free_bytes)
        .number("largest_free", one.largest_free_bytes)
        .word("unmap", name_of(one.unmap))
        .number("attempts", one.unmap_attempts)
        .milliseconds("empty_since_ms", one.empty_since_ns);
    if (one.state == arena_state::retiring)
      json.word("kind", "arena").milliseconds("since_ms", one.retired_ns).word("reason", name_of(one.why_retired));
    json.close('}');
  }
  json.close(']');
}

}  // namespace

std::string memory_snapshot::to_json() const {
  json_text json;
  char incarnation_text[17];
  std::snprintf(incarnation_text, sizeof incarnation_text, "%016llx", static_cast<unsigned long long>(incarnation));
  json.open("", '{');
  json.open("budget", '{')
      .number("registered", budget.registered_bytes)
      .number("ceiling", budget.ceiling_bytes)
      .number("reserved_open", budget.reserved_open_bytes)
      .flag("corrupt", budget.corrupt)
      .close('}');
  json.open("gate", '{')
      .word("state", gate.state)
      .number("tickets", gate.tickets)
      .number("transfers", gate.transfers)
      .close('}');
  json.open("pool", '{')
      .number("arena_count", pool.arena_count)
      .number("live_spans", pool.live_spans)
      .number("in_flight", pool.in_flight)
      .number("maps_outstanding", pool.maps_outstanding)
      .number("waiting", pool.waiting)
      .milliseconds("reclaim_ms", pool.reclaim_after_ns)
      .number("retain_bytes", pool.retain_bytes)
      .close('}');
  json.open("backend", '{')
      .word("kind", backend.kind)
      .word("incarnation", incarnation_text)
      .word("get", backend.get_works ? "works" : "absent")
      .flag("get_uses_memh", backend.get_uses_memh)
      .word("unmap_verdict", backend.unmap_verdict_reported ? "reported" : "assumed")
      .flag("destroy_is_fence", backend.destroy_is_fence)
      .close('}');
  write_arenas(json, "arenas", arenas);
  write_arenas(json, "retiring", retiring);
  json.open("quarantined", '[');
  for (const quarantine_view& one : quarantined)
    json.open("", '{')
        .number("generation", one.terms.id)
        .word("kind", name_of(one.terms.kind))
        .number("bytes", one.terms.bytes)
        .milliseconds("since_ms", one.since.time_since_epoch().count())
        .word("reason", name_of(one.terms.reason))
        .close('}');
  json.close(']');
  json.open("abandoned", '{').number("entries", abandoned.entries).number("bytes", abandoned.bytes).close('}');
  json.close('}');
  return json.take();
}

memory_snapshot take_snapshot(pool_core& pool) {
  memory_snapshot snapshot;
  const capacity_snapshot books = pool.ledger.snapshot();
  snapshot.budget = {books.charged_bytes, books.ceiling_bytes, books.reserved_bytes, books.corrupt};
  snapshot.gate = {pool.ending.state_name(), pool.operations.in_flight(), pool.transfers.in_flight()};
  snapshot.backend = pool.declared;
  snapshot.incarnation = pool.incarnation;
  std::size_t expected = 0;
  {
    scoped_lock vector(pool.vector);
    expected = pool.in_service.size();
  }
  // Room is made before the lock is taken; arenas that come meanwhile are left to the next snapshot.
  snapshot.arenas.reserve(expected);
  {
    scoped_lock vector(pool.vector);
    for (arena& one : pool.in_service)
      if (snapshot.arenas.size() < expected) snapshot.arenas.push_back(describe(one));
  }
  std::vector<arena*> retired(pool.retiring.size());
  retired.resize(pool.retiring.share_some(retired));
  snapshot.retiring.reserve(retired.size());
  for (arena* const one : retired) {
    snapshot.retiring.push_back(describe(*one));
    one->drop_share();
  }
  std::size_t entries = pool.held.snapshot_into({});
  do {
    snapshot.quarantined.resize(entries);
    entries = pool.held.snapshot_into(snapshot.quarantined);
  } while (entries > snapshot.quarantined.size());
  snapshot.quarantined.resize(entries);
  snapshot.abandoned = pool.held.totals().abandoned;
  snapshot.pool.reclaim_after_ns = pool.options.arena_reclaim_after_ns;
  snapshot.pool.retain_bytes = pool.options.retain_arena_bytes;
  snapshot.pool.maps_outstanding = pool.growing.outstanding();
  snapshot.pool.waiting = pool.growing.waiting();
  for (const arena_snapshot& one : snapshot.arenas) {
    ++snapshot.pool.arena_count;
    snapshot.pool.live_spans += one.live;
    snapshot.pool.in_flight += one.holds;
  }
  return snapshot;
}

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
