#include <holdfast/platform/abi.hpp>

#include <holdfast/telemetry/event.hpp>

namespace holdfast::inline HOLDFAST_ABI {

namespace {
constexpr event_description table[] = {
#define HOLDFAST_EVENT(name, level, subject, sentence, ...) \
  {#name, event_level::level, #subject, sentence, {__VA_ARGS__}, detail::event_field_count(__VA_ARGS__)},
#include <holdfast/telemetry/events.def>
#undef HOLDFAST_EVENT
};
}  // namespace

std::span<const event_description> event_table() noexcept { return table; }

}  // namespace holdfast::inline HOLDFAST_ABI
