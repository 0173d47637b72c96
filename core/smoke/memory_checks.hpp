// Checks of registered memory that every device has to pass.
//
// Why this exists: registration, growth and give-back mean the same on each, and are looked at in the same way.
//
// Ownership   What is allocated is given back before they return.
// Units       Bytes.
// Threading   One thread.
// Failure     A row of the table, and false.
#pragma once

#include <holdfast/platform/abi.hpp>

#include "smoke/checks.hpp"
#include "smoke/node.hpp"

#include <cstdint>
#include <string_view>

namespace holdfast::smoke {

/// The first arena: registered, charged, and its bytes are ordinary memory.
bool check_registration(checks& found, std::string_view part, node& own, std::uint64_t bytes);
/// Allocates until `arenas` serve: no two buffers share a byte, and none loses one. Then gives everything back and
/// takes it again without registering more.
bool check_growth(checks& found, std::string_view part, node& own, std::uint64_t bytes, std::uint64_t arenas);
/// An arena of its own goes back by itself once nobody uses it.
bool check_reclaim(checks& found, std::string_view part, node& own, std::uint64_t bytes);
/// A request above the budget is refused by name and leaves nothing charged.
bool check_budget(checks& found, std::string_view part, node& own);

}  // namespace holdfast::smoke
