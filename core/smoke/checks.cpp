#include <holdfast/platform/abi.hpp>

#include "smoke/checks.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace holdfast::smoke {

std::string_view name_of(verdict v) noexcept {
  constexpr std::string_view names[] = {"ok", "failed", "absent"};
  return names[static_cast<std::size_t>(v)];
}

void checks::ok(std::string_view part, std::string_view name, std::string figure) {
  add({std::string(part), std::string(name), verdict::ok, std::move(figure), {}});
}

void checks::failed(std::string_view part, std::string_view name, std::string reason, std::string figure) {
  add({std::string(part), std::string(name), verdict::failed, std::move(figure), std::move(reason)});
}

void checks::absent(std::string_view part, std::string_view name, std::string reason) {
  add({std::string(part), std::string(name), verdict::absent, {}, std::move(reason)});
}

void checks::add(check one) {
  // One row, one line, whatever words a provider used.
  for (std::string* text : {&one.figure, &one.reason})
    std::ranges::replace_if(*text, [](unsigned char c) { return c < ' ' || c == 127; }, ' ');
  if (table_ != nullptr) {
    if (!std::exchange(headed_, true))
      std::fprintf(table_, "%-6s %-20s %-7s %s\n", "part", "check", "result", "figure, or reason");
    const std::string last =
        one.figure.empty() || one.reason.empty() ? one.figure + one.reason : one.figure + ": " + one.reason;
    std::fprintf(table_, "%-6s %-20s %-7s %s\n", one.part.c_str(), one.name.c_str(),
                 std::string(name_of(one.result)).c_str(), last.c_str());
    std::fflush(table_);
  }
  all_.push_back(std::move(one));
}

const check* checks::first_failure() const noexcept {
  const auto found = std::ranges::find(all_, verdict::failed, &check::result);
  return found == all_.end() ? nullptr : &*found;
}

int checks::exit_code() const noexcept {
  const bool ran = std::ranges::find(all_, verdict::ok, &check::result) != all_.end();
  return ran && first_failure() == nullptr ? 0 : 1;
}

std::string checks::to_json(const std::vector<fact>& machine) const {
  using json = nlohmann::ordered_json;
  json facts = json::object();
  for (const fact& f : machine) {
    if (f.is_number)
      facts[f.name] = f.number;
    else
      facts[f.name] = f.text;
  }
  json rows = json::array();
  for (const check& c : all_)
    rows.push_back({{"part", c.part},
                    {"check", c.name},
                    {"result", name_of(c.result)},
                    {"figure", c.figure},
                    {"reason", c.reason}});
  json out;
  out["machine"] = std::move(facts);
  out["checks"] = std::move(rows);
  // Words of providers are quoted, and need not be UTF-8.
  return out.dump(2, ' ', false, json::error_handler_t::replace);
}

namespace {

std::string three_digits(double value, const char* unit) {
  char text[48];
  std::snprintf(text, sizeof text, value < 9.995 ? "%.2f %s" : value < 99.95 ? "%.1f %s" : "%.0f %s", value, unit);
  return text;
}

}  // namespace

std::string count_text(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string time_text(std::int64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000) return std::to_string(ns) + " ns";
  if (ns < 1'000'000) return three_digits(value / 1e3, "us");
  if (ns < 1'000'000'000) return three_digits(value / 1e6, "ms");
  return three_digits(value / 1e9, "s");
}

std::string rate_text(std::uint64_t bytes, std::int64_t ns) {
  const double rate = static_cast<double>(bytes) * 1e9 / static_cast<double>(std::max<std::int64_t>(ns, 1));
  return rate < 1e9 ? three_digits(rate / 1e6, "MB/s") : three_digits(rate / 1e9, "GB/s");
}

}  // namespace holdfast::smoke
