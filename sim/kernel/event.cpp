#include <sim/kernel/event.hpp>

namespace holdfast::sim {

namespace {
using holdfast::event_level;
constexpr holdfast::event_description table[] = {
#define HOLDFAST_EVENT(name, level, subject, sentence, ...) \
  {#name, event_level::level, #subject, sentence, {__VA_ARGS__}, holdfast::detail::event_field_count(__VA_ARGS__)},
#include <sim/kernel/hardware_events.def>
#undef HOLDFAST_EVENT
};
}  // namespace

std::span<const holdfast::event_description> hardware_event_table() noexcept { return table; }
std::size_t core_event_count() noexcept { return holdfast::event_table().size(); }

const holdfast::event_description& describe(event_kind kind) noexcept {
  const auto raw = static_cast<std::uint16_t>(kind);
  if (is_hardware(kind)) return table[raw & static_cast<std::uint16_t>(~hardware_bit)];
  return holdfast::event_table()[raw];
}

}  // namespace holdfast::sim
