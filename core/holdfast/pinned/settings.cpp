#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/settings.hpp>

#include <algorithm>
#include <cstdio>

namespace holdfast::inline HOLDFAST_ABI::pinned {

namespace {

result<void> within(const char* option, std::uint64_t value, std::uint64_t low, std::uint64_t high) noexcept {
  if (value >= low && value <= high) return {};
  char words[sizeof(error::words)];
  std::snprintf(words, sizeof words, "%s %llu not in %llu..%llu", option, static_cast<unsigned long long>(value),
                static_cast<unsigned long long>(low), static_cast<unsigned long long>(high));
  auto failure = fail_with_words(error_code::out_of_range, "pinned.settings", words, 0, value);
  failure.error().numbers[1] = low;
  failure.error().numbers[2] = high;
  return failure;
}

}  // namespace

result<void> validate(const settings& options) noexcept {
  constexpr std::uint64_t largest = granules_max * granule_bytes;
  if (auto ok = within("initial_arena_bytes", options.initial_arena_bytes, granule_bytes, largest); !ok) return ok;
  if (auto ok = within("max_arena_bytes", options.max_arena_bytes, options.initial_arena_bytes, largest); !ok)
    return ok;
  if (auto ok = within("dedicated_arena_min", options.dedicated_arena_min, granule_bytes, UINT64_MAX); !ok) return ok;
  constexpr std::uint64_t longest = INT64_MAX;
  // A negative time is a large number here, and named as such.
  if (auto ok = within("arena_reclaim_after_ns", static_cast<std::uint64_t>(options.arena_reclaim_after_ns), 0, longest);
      !ok)
    return ok;
  if (auto ok = within("unmap_timeout_ns", static_cast<std::uint64_t>(options.unmap_timeout_ns), 1, longest); !ok)
    return ok;
  return within("unmap_retry_max", options.unmap_retry_max, 0, 16);
}

result<std::uint32_t> granules_for(std::uint64_t bytes, const char* operation) noexcept {
  if (const std::uint32_t granules = granules_of(bytes); granules != 0) return granules;
  return fail(error_code::out_of_range, operation, 0, bytes, 1, granules_max * granule_bytes);
}

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) noexcept {
  const std::uint64_t more = bytes + (unit - 1);
  return more < bytes ? 0 : more & ~(unit - 1);
}

std::int64_t reclaim_period_ns(const settings& options) noexcept {
  constexpr std::int64_t shortest = 10'000'000, longest = 100'000'000;
  return std::clamp(options.arena_reclaim_after_ns / 2, shortest, longest);
}

std::uint64_t growth_target(const settings& options, std::uint32_t pooled_arenas, std::uint64_t request_bytes,
                            std::uint64_t page_bytes) noexcept {
  std::uint64_t target = options.initial_arena_bytes;
  // Doubling by hand: a shift by the number of arenas would drop the high bits instead of stopping at the maximum.
  for (std::uint32_t i = 0; i < pooled_arenas && target < options.max_arena_bytes; ++i)
    target = target > options.max_arena_bytes / 2 ? options.max_arena_bytes : target * 2;
  target = std::max({std::min(target, options.max_arena_bytes), request_bytes, std::uint64_t{granule_bytes}});
  return round_up(target, std::max(page_bytes, std::uint64_t{granule_bytes}));
}

}  // namespace holdfast::inline HOLDFAST_ABI::pinned
