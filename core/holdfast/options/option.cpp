#include <holdfast/platform/abi.hpp>

#include <holdfast/options/option.hpp>

#include <array>

namespace holdfast::inline HOLDFAST_ABI::options {

namespace {

constexpr std::string_view prefix = "HOLDFAST_";

// "HOLDFAST_" and the name in capitals, the dot as an underscore.
template <std::size_t Length>
struct variable_name {
  std::array<char, Length + 9> letters{};
  consteval explicit variable_name(const char (&name)[Length]) {
    std::size_t at = 0;
    for (const char c : prefix) letters[at++] = c;
    for (std::size_t i = 0; i + 1 < Length; ++i) {
      const char c = name[i];
      letters[at++] = c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
  }
  constexpr std::string_view view() const noexcept { return {letters.data(), letters.size() - 1}; }
};

#define HOLDFAST_VARIABLE(subsystem, name) constexpr variable_name subsystem##_##name##_variable(#subsystem "." #name);
#define HOLDFAST_PINNED_OPTION(name, ...) HOLDFAST_VARIABLE(pinned, name)
#define HOLDFAST_RUNTIME_OPTION(name, ...) HOLDFAST_VARIABLE(runtime, name)
#define HOLDFAST_TRANSPORT_OPTION(name, ...) HOLDFAST_VARIABLE(transport, name)
#define HOLDFAST_UCX_OPTION(name, ...) HOLDFAST_VARIABLE(transport, name)
#include <holdfast/options/options.def>
#undef HOLDFAST_VARIABLE

#define HOLDFAST_DESCRIPTION(subsystem, name, kind, choices, low, high, initial, since, text) \
  {#subsystem,                                                                                \
   #subsystem "." #name,                                                                      \
   subsystem##_##name##_variable.view(),                                                      \
   option_kind::kind,                                                                         \
   choices,                                                                                   \
   low,                                                                                       \
   high,                                                                                      \
   initial_value(initial),                                                                    \
   since,                                                                                     \
   text},
constexpr option_description table[] = {
#define HOLDFAST_PINNED_OPTION(name, member, kind, choices, low, high, initial, since, text) \
  HOLDFAST_DESCRIPTION(pinned, name, kind, choices, low, high, initial, since, text)
#define HOLDFAST_RUNTIME_OPTION(name, member, kind, choices, low, high, initial, since, text) \
  HOLDFAST_DESCRIPTION(runtime, name, kind, choices, low, high, initial, since, text)
#define HOLDFAST_TRANSPORT_OPTION(name, member, kind, choices, low, high, initial, since, text) \
  HOLDFAST_DESCRIPTION(transport, name, kind, choices, low, high, initial, since, text)
#define HOLDFAST_UCX_OPTION(name, member, kind, choices, low, high, initial, since, text) \
  HOLDFAST_DESCRIPTION(transport, name, kind, choices, low, high, initial, since, text)
#include <holdfast/options/options.def>
};
#undef HOLDFAST_DESCRIPTION

constexpr order_rule rules[] = {
#define HOLDFAST_PINNED_RULE(lower, upper) {option_id::pinned_##lower, option_id::pinned_##upper},
#include <holdfast/options/options.def>
};

constexpr other_variable others[] = {
#define HOLDFAST_OTHER_VARIABLE(name, text) {#name, text},
#include <holdfast/options/options.def>
};

}  // namespace

std::span<const option_description> option_table() noexcept { return table; }
std::span<const order_rule> order_rules() noexcept { return rules; }
std::span<const other_variable> other_variables() noexcept { return others; }
const option_description& description_of(option_id which) noexcept { return table[static_cast<std::size_t>(which)]; }

}  // namespace holdfast::inline HOLDFAST_ABI::options
