// The defaults of the settings structs, out of the table.
//
// Why this exists: a struct has to have its defaults without reading anything, and they must be the documented ones.
// `initial::pinned::unmap_timeout_ns` is the default of that member.
//
// Ownership   Constants. Units: as option.hpp. Threading: any. Failure: none.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/options/option.hpp>

#include <cstdint>
#include <type_traits>

namespace holdfast::inline HOLDFAST_ABI::options {

/// How a settings struct holds a value: unsigned, nanoseconds as a signed number, bool, or text.
template <option_kind Kind>
using member_type = std::conditional_t<
    Kind == option_kind::size || Kind == option_kind::count, std::uint64_t,
    std::conditional_t<Kind == option_kind::duration || Kind == option_kind::duration_or_never, std::int64_t,
                       std::conditional_t<Kind == option_kind::boolean, bool, const char*>>>;

namespace initial {

#define HOLDFAST_INITIAL(member, kind, initial) \
  inline constexpr member_type<option_kind::kind> member = static_cast<member_type<option_kind::kind>>(initial);

namespace pinned {
#define HOLDFAST_PINNED_OPTION(name, member, kind, choices, low, high, initial, ...) \
  HOLDFAST_INITIAL(member, kind, initial)
#include <holdfast/options/options.def>
}  // namespace pinned

namespace runtime {
#define HOLDFAST_RUNTIME_OPTION(name, member, kind, choices, low, high, initial, ...) \
  HOLDFAST_INITIAL(member, kind, initial)
#include <holdfast/options/options.def>
}  // namespace runtime

namespace transport {
#define HOLDFAST_TRANSPORT_OPTION(name, member, kind, choices, low, high, initial, ...) \
  HOLDFAST_INITIAL(member, kind, initial)
#include <holdfast/options/options.def>
}  // namespace transport

namespace ucx {
#define HOLDFAST_UCX_OPTION(name, member, kind, choices, low, high, initial, ...) \
  HOLDFAST_INITIAL(member, kind, initial)
#include <holdfast/options/options.def>
}  // namespace ucx

#undef HOLDFAST_INITIAL

}  // namespace initial
}  // namespace holdfast::inline HOLDFAST_ABI::options
