#include <holdfast/platform/abi.hpp>

#include "smoke/memory_checks.hpp"

#include "smoke/pattern.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace holdfast::smoke {

namespace {

std::int64_t since(steady::time_point began) { return (steady::now() - began).count(); }

// Empty: fine.
std::string overlap(std::vector<pinned::buffer>& all) {
  std::vector<std::span<std::byte>> ranges;
  for (pinned::buffer& one : all) ranges.push_back(one.bytes());
  std::ranges::sort(ranges, {}, [](std::span<std::byte> r) { return r.data(); });
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i - 1].data() + ranges[i - 1].size() > ranges[i].data()) return "two buffers share bytes";
  return {};
}

std::string lost_byte(std::vector<pinned::buffer>& all) {
  for (std::size_t i = 0; i < all.size(); ++i)
    if (const auto wrong = first_wrong(all[i].bytes(), i))
      return "buffer " + std::to_string(i) + " lost its byte " + std::to_string(*wrong);
  return {};
}

}  // namespace

bool check_registration(checks& found, std::string_view part, node& own, std::uint64_t bytes) {
  constexpr std::string_view name = "registration";
  const steady::time_point began = steady::now();
  auto got = own.alloc(bytes);
  const std::int64_t took = since(began);
  if (!got) return found.failed(part, name, got.error()), false;
  const auto now = own.memory().snapshot();
  if (now.pool.arena_count != 1 || now.budget.registered_bytes < bytes)
    return found.failed(part, name, "the books do not show the arena: " + now.to_json()), false;
  write_pattern(got->bytes(), 1);
  if (const auto wrong = first_wrong(got->bytes(), 1))
    return found.failed(part, name, "byte " + std::to_string(*wrong) + " is not what was written"), false;
  if (!got->remote()) return found.failed(part, name, "registered memory has no remote reference"), false;
  found.ok(part, name, bytes_text(now.budget.registered_bytes) + " in " + time_text(took));
  return true;
}

bool check_growth(checks& found, std::string_view part, node& own, std::uint64_t bytes, std::uint64_t arenas) {
  constexpr std::size_t buffers_max = 4096;
  std::vector<pinned::buffer> all;
  const steady::time_point began = steady::now();
  while (own.memory().arena_count() < arenas) {
    auto got = all.size() < buffers_max ? own.alloc(bytes) : std::unexpected(std::string("the pool does not grow"));
    if (!got) return found.failed(part, "growth", got.error()), false;
    write_pattern(got->bytes(), all.size());
    all.push_back(std::move(*got));
  }
  const std::int64_t took = since(began);
  std::string wrong = overlap(all);
  if (wrong.empty()) wrong = lost_byte(all);
  if (!wrong.empty()) return found.failed(part, "growth", wrong), false;
  const std::uint64_t registered = own.memory().registered_bytes();
  found.ok(part, "growth",
           std::to_string(arenas) + " arenas, " + bytes_text(registered) + ", in " + time_text(took) + "; " +
               std::to_string(all.size()) + " buffers, every byte checked");

  const std::size_t count = all.size();
  all.clear();
  if (const std::uint64_t live = own.memory().live_spans(); live != 0)
    return found.failed(part, "give-back", std::to_string(live) + " spans are live after everything was freed"), false;
  for (std::size_t i = 0; i < count; ++i) {
    auto again = own.memory().try_alloc(bytes);
    if (!again)
      return found.failed(part, "give-back", "after " + std::to_string(i) + " buffers: " + sentence(again.error())),
             false;
    write_pattern(again->bytes(), i);
    all.push_back(std::move(*again));
  }
  wrong = overlap(all);
  if (wrong.empty()) wrong = lost_byte(all);
  if (wrong.empty() && own.memory().registered_bytes() != registered) wrong = "room was registered that was there";
  if (!wrong.empty()) return found.failed(part, "give-back", wrong), false;
  found.ok(part, "give-back", std::to_string(count) + " buffers freed and served again, nothing registered for them");
  return true;
}

bool check_reclaim(checks& found, std::string_view part, node& own, std::uint64_t bytes) {
  constexpr std::string_view name = "reclaim";
  const std::uint64_t before = own.memory().registered_bytes();
  awaited<result<pinned::buffer>> told;
  own.memory().async_alloc(bytes, pinned::alloc_options{.own_arena = true}, told.handler());
  if (!told.wait(patience)) return found.failed(part, name, "the request was not answered"), false;
  if (!told.answer()) return found.failed(part, name, sentence(told.answer().error())), false;
  write_pattern(told.answer()->bytes(), 7);
  const std::uint64_t with = own.memory().registered_bytes();
  told.answer()->reset();
  const steady::time_point began = steady::now();
  while (own.memory().registered_bytes() != before) {
    if (since(began) > std::chrono::nanoseconds(patience).count())
      return found.failed(part, name,
                          "an empty arena of its own is still registered: " + own.memory().snapshot().to_json()),
             false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  found.ok(part, name,
           bytes_text(with - before) + " of an empty arena given back by itself in " + time_text(since(began)));
  return true;
}

bool check_budget(checks& found, std::string_view part, node& own) {
  constexpr std::string_view name = "budget";
  const std::uint64_t before = own.memory().registered_bytes();
  const std::uint64_t budget = own.memory().budget_bytes();
  awaited<result<pinned::buffer>> told;
  own.memory().async_alloc(budget + pinned::granule_bytes, told.handler());
  if (!told.wait(patience)) return found.failed(part, name, "the request was not answered"), false;
  if (told.answer()) return found.failed(part, name, "a request above the budget was served"), false;
  if (told.answer().error().code != error_code::budget_exceeded)
    return found.failed(part, name, "refused for another reason: " + sentence(told.answer().error())), false;
  if (own.memory().registered_bytes() != before)
    return found.failed(part, name, "the refused request is charged"), false;
  found.ok(part, name, "a request above " + bytes_text(budget) + " is refused, nothing is charged");
  return true;
}

}  // namespace holdfast::smoke
