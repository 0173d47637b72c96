#include <holdfast/platform/abi.hpp>

#include "smoke/machine.hpp"
#include "smoke/memory_checks.hpp"
#include "smoke/node.hpp"
#include "smoke/parts.hpp"

#include <algorithm>

namespace holdfast::smoke {

namespace {

constexpr const char* part = "host";

/// Above this nobody's limit is tried: it would lock what others need.
constexpr std::uint64_t tried_max = std::uint64_t{256} << 20;

/// Three arenas have to fit into what may be locked, with room to spare; the budget has to reach beyond the limit.
pinned::settings settings_within(const lock_limits& limits) {
  constexpr std::uint64_t enough = std::uint64_t{16} << 20;
  constexpr std::uint64_t granule = pinned::granule_bytes;
  const std::uint64_t usable = std::max(std::min(limits.soft_bytes / 4 * 3, enough), 16 * granule);
  pinned::settings values;
  values.registered_bytes_budget = limits.soft_bytes > tried_max ? enough : 2 * limits.soft_bytes + enough;
  values.initial_arena_bytes = usable / 16 / granule * granule;
  values.max_arena_bytes = usable / 2;
  values.dedicated_arena_min = usable / 2;
  return values;
}

// What the system does with more than the limit depends on privileges; either answer is fine, if the books agree.
void check_limit(checks& found, node& own, const lock_limits& limits) {
  constexpr std::string_view name = "limit";
  if (limits.soft_bytes > tried_max) return found.ok(part, name, limits_text(limits) + ": not tried");
  const std::uint64_t bytes = limits.soft_bytes + pinned::granule_bytes;
  const std::uint64_t before = own.memory().registered_bytes();
  awaited<result<pinned::buffer>> told;
  own.memory().async_alloc(bytes, pinned::alloc_options{.own_arena = true}, told.handler());
  if (!told.wait(patience)) return found.failed(part, name, "a request above the limit was not answered");
  if (told.answer())
    return found.ok(
        part, name,
        limits_text(limits) + ": " + bytes_text(bytes) + " locked nevertheless, this process may lock more");
  if (told.answer().error().code != error_code::limit_exceeded)
    return found.failed(part, name, "refused for another reason: " + sentence(told.answer().error()));
  if (own.memory().registered_bytes() != before) return found.failed(part, name, "the refused request is charged");
  found.ok(part, name, limits_text(limits) + ": " + bytes_text(bytes) + " are refused, nothing is charged");
}

void check_shutdown(surroundings& s, node& own) {
  constexpr std::string_view name = "shutdown";
  const std::uint64_t arenas = own.memory().arena_count();
  const auto ended = own.shut_down(std::chrono::seconds(5), patience);
  s.record.add("host", own.events());
  if (!ended) return s.found.failed(part, name, ended.error());
  if (!ended->report.clean() || ended->report.pinned.arenas_confirmed < arenas)
    return s.found.failed(part, name, "not clean: " + ended->report.to_json());
  s.found.ok(part, name,
             std::to_string(ended->report.pinned.arenas_confirmed) + " arenas given back in " +
                 time_text(ended->took_ns) + ", 0 bytes registered");
}

}  // namespace

void check_host(surroundings& s) {
  const lock_limits limits = locked_memory_limits();
  const pinned::settings values = settings_within(limits);
  auto opened = node::open(device_kind::host, values);
  if (!opened) return s.found.failed(part, "open", sentence(opened.error()));
  node& own = **opened;
  if (check_registration(s.found, part, own, values.initial_arena_bytes / 2) &&
      check_growth(s.found, part, own, values.initial_arena_bytes / 4, 3) &&
      check_reclaim(s.found, part, own, values.initial_arena_bytes))
    check_budget(s.found, part, own);
  check_limit(s.found, own, limits);
  check_shutdown(s, own);
}

}  // namespace holdfast::smoke
