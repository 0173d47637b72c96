#include <holdfast/platform/abi.hpp>

#include <holdfast/pinned/settings.hpp>

#include <holdfast/options/check.hpp>

#include <algorithm>

namespace holdfast::inline HOLDFAST_ABI::pinned {

result<void> validate(const settings& values) noexcept {
  constexpr const char* operation = "pinned.settings";
#define HOLDFAST_PINNED_OPTION(name, member, ...)                                                                 \
  if (auto ok = options::check_member(options::option_id::pinned_##name, operation, #member, values.member); !ok) \
    return ok;
#define HOLDFAST_PINNED_RULE(lower, upper)                                                                         \
  if (auto ok =                                                                                                    \
          options::check_above(options::option_id::pinned_##upper, operation, #upper, values.lower, values.upper); \
      !ok)                                                                                                         \
    return ok;
#include <holdfast/options/options.def>
  return {};
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
