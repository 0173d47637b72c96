#include <sim/trace/event_text.hpp>

#include <sim/kernel/fiber.hpp>

#include <nlohmann/json.hpp>

#include <string_view>

namespace holdfast::sim {

namespace {

struct field_text {
  std::string_view name;
  std::string value;
  bool is_word;  // of an enumeration
};

// "state:enum(a|b|c)": the name of value 1 is "b". An unlisted value stays a number.
field_text render(std::string_view description, std::uint64_t value) {
  const std::size_t colon = description.find(':');
  const std::string_view name = description.substr(0, colon);
  std::string_view type = colon == description.npos ? std::string_view{} : description.substr(colon + 1);
  if (type == "flag") return {name, value != 0 ? "true" : "false", false};
  if (type == "status" || type == "ns") return {name, std::to_string(static_cast<std::int64_t>(value)), false};
  if (type.starts_with("enum(") && type.ends_with(")")) {
    type = type.substr(5, type.size() - 6);
    for (std::uint64_t i = 0; !type.empty(); ++i) {
      const std::size_t bar = type.find('|');
      if (i == value) return {name, std::string(type.substr(0, bar)), true};
      if (bar == type.npos) break;
      type.remove_prefix(bar + 1);
    }
  }
  return {name, std::to_string(value), false};
}

}  // namespace

std::string who_of(world& w, const logged_event& e) {
  if (const fiber* f = w.running(); f != nullptr && f->index == e.fiber) return f->name;
  if (e.host < w.hosts().size()) return w.hosts()[e.host]->name();
  return "world";
}

std::string event_json(const logged_event& e, const std::string& who) {
  const auto& about = describe(e.kind);
  std::string out = R"({"line":"event","n":)" + std::to_string(e.number) + R"(,"t":)" + std::to_string(e.time_ns) +
                    R"(,"who":)" + nlohmann::json(who).dump() + R"(,"event":")" + std::string(about.name) +
                    R"(","fields":{)";
  for (std::uint16_t i = 0; i < e.field_count; ++i) {
    const field_text field = render(about.fields[i], e.fields[i]);
    if (i != 0) out += ',';
    out += '"' + std::string(field.name) + "\":" + (field.is_word ? '"' + field.value + '"' : field.value);
  }
  return out + "}}";
}

std::string event_text(const logged_event& e, const std::string& who) {
  const auto& about = describe(e.kind);
  std::string time = std::to_string(e.time_ns);
  if (time.size() < 12) time.insert(0, 12 - time.size(), ' ');
  std::string out = time + " ns  " + who + "  " + std::string(about.name);
  for (std::uint16_t i = 0; i < e.field_count; ++i) {
    const field_text field = render(about.fields[i], e.fields[i]);
    out += (i == 0 ? "  " : " ") + std::string(field.name) + '=' + field.value;
  }
  return out;
}

void event_collector::on_event(world& w, const logged_event& e) {
  if (lines.size() >= events_max_) return;
  const std::string who = who_of(w, e);
  lines.push_back(form_ == form::json ? event_json(e, who) : event_text(e, who));
}

}  // namespace holdfast::sim
