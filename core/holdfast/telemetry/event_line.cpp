#include <holdfast/platform/abi.hpp>

#include <holdfast/telemetry/event_line.hpp>

namespace holdfast::inline HOLDFAST_ABI {

namespace {

/// The name of `value` in "enum(a|b|c)"; empty: the type is no enumeration, or has no such value.
std::string_view enumerator(std::string_view type, std::uint64_t value) noexcept {
  constexpr std::string_view before = "enum(";
  if (!type.starts_with(before) || !type.ends_with(')')) return {};
  type.remove_prefix(before.size());
  type.remove_suffix(1);
  for (; value > 0; --value) {
    const std::size_t bar = type.find('|');
    if (bar == type.npos) return {};
    type.remove_prefix(bar + 1);
  }
  return type.substr(0, type.find('|'));
}

void append_value(std::string& to, std::string_view type, std::uint64_t value) {
  if (const std::string_view name = enumerator(type, value); !name.empty()) {
    to.append("\"").append(name).append("\"");
  } else if (type == "flag") {
    to += value != 0 ? "true" : "false";
  } else if (type == "status" || type == "ns") {
    to += std::to_string(static_cast<std::int64_t>(value));
  } else {
    to += std::to_string(value);
  }
}

}  // namespace

std::string event_line(const event_record& event, std::uint64_t number, std::string_view who) {
  const event_description& about = describe(event.id);
  std::string line = "{\"line\":\"event\",\"n\":";
  line.append(std::to_string(number)).append(",\"t\":").append(std::to_string(event.time_ns));
  line.append(",\"who\":\"").append(who).append("\",\"event\":\"").append(about.name).append("\",\"fields\":{");
  for (std::uint16_t i = 0; i < event.field_count; ++i) {
    const std::string_view field = about.fields[i];
    const std::size_t colon = field.find(':');
    if (i != 0) line += ',';
    line.append("\"").append(field.substr(0, colon)).append("\":");
    append_value(line, colon == field.npos ? std::string_view() : field.substr(colon + 1), event.fields[i]);
  }
  return line.append("}}");
}

}  // namespace holdfast::inline HOLDFAST_ABI
