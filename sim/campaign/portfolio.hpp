// Which strategy a run uses, if nobody asked for one.
//
// Why this exists: strategies find different bugs, and nobody knows beforehand which one finds the next. So a campaign
// mixes them. Which run uses which depends on scenario and seed alone: `run SCENARIO --seed N` makes the run that a
// campaign made of that seed, and the exact text stands in its trace.
//
// Threading   Any. Failure: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::sim {

constexpr std::string_view portfolio = "portfolio";

/// "random:stay=700,time=20": what `text` means for this run; anything but "portfolio" means itself. Valid for
/// `make_strategy` if `text` is, or is "portfolio".
std::string strategy_for(std::string_view text, std::string_view scenario, std::uint64_t seed);

}  // namespace holdfast::sim
