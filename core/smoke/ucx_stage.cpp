#include <holdfast/platform/abi.hpp>

#include "smoke/ucx_stage.hpp"

#include "smoke/pattern.hpp"

#include <algorithm>
#include <map>

namespace holdfast::smoke {

namespace {

/// A GET's buffer after its complement was written: the caller's last look at it.
pinned::buffer prepared(pinned::buffer into, std::uint64_t seed, std::uint64_t offset, std::uint64_t bytes) {
  write_complement(into.bytes().first(bytes), seed, offset);
  return into;
}

}  // namespace

result<void> ucx_stage::open(bool shared_memory) {
  const options& given = with.given;
  pinned::settings values;
  values.initial_arena_bytes = std::uint64_t{4} << 20;
  values.max_arena_bytes = std::uint64_t{64} << 20;
  values.dedicated_arena_min = std::uint64_t{64} << 20;
  constexpr std::uint64_t mebi = std::uint64_t{1} << 20;
  values.registered_bytes_budget = 2 * pinned::round_up(given.bytes, mebi) + (512 + 8 * given.peers) * mebi;
  auto made = node::open(device_kind::ucx, values, given.ucx_library, shared_memory);
  if (!made) return std::unexpected(made.error());
  own = std::move(*made);
  return {};
}

std::expected<std::unique_ptr<peer_process>, std::string> ucx_stage::start_peer(std::uint64_t bytes) {
  auto started = peer_process::start(with.children, bytes, ++last_seed, with.given.ucx_library);
  if (!started) return started;
  const offer& there = (*started)->offered();
  awaited<result<peer_id>> told;
  own->peers().async_connect(there.address, there.who, told.handler());
  if (!told.wait(patience)) return std::unexpected("a connection attempt was not answered");
  if (!told.answer()) return std::unexpected(sentence(told.answer().error()));
  return started;
}

pending_get::pending_get(node& own, const peer_process& from, std::uint64_t offset, std::uint64_t bytes,
                         pinned::buffer into)
    : seed_(from.seed()), offset_(offset), bytes_(bytes) {
  remote_reference source = from.offered().memory;
  source.address += offset;
  source.length = bytes;
  pinned::buffer destination = prepared(std::move(into), seed_, offset_, bytes_);
  began_ = steady::now();
  own.memory().async_get(from.offered().who, source, std::move(destination), told_.handler());
}

std::optional<error> pending_get::failure() {
  if (!told_.answer()) return told_.answer().error();
  if (!told_.answer()->outcome) return told_.answer()->outcome.error();
  return std::nullopt;
}

std::string pending_get::wrong_bytes() {
  const auto wrong = first_wrong(told_.answer()->destination.bytes().first(bytes_), seed_, offset_);
  return wrong ? "byte " + std::to_string(*wrong) + " of a GET of " + bytes_text(bytes_) + " is not the peer's"
               : std::string();
}

pinned::buffer pending_get::take_buffer() {
  return told_.came() && told_.answer() ? std::move(told_.answer()->destination) : pinned::buffer();
}

operations_seen look_at_operations(const node& own) {
  // The ring keeps the newest: whatever was accepted in it has its end in it.
  std::map<std::uint64_t, int> ends;
  operations_seen out;
  for (const event_record& event : own.events()) {
    if (event.id == event_id::operation_accepted) ends.emplace(event.fields[0], 0);
    if (event.id != event_id::operation_ended) continue;
    if (const auto found = ends.find(event.fields[0]); found != ends.end()) ++found->second;
  }
  for (const auto& [operation, count] : ends) {
    if (count != 1) out.wrong = "operation " + std::to_string(operation) + " ended " + std::to_string(count) + " times";
    ++out.ended;
  }
  return out;
}

}  // namespace holdfast::smoke
