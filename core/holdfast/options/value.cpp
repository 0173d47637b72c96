#include <holdfast/platform/abi.hpp>

#include <holdfast/options/value.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <span>

namespace holdfast::inline HOLDFAST_ABI::options {

namespace {

struct unit {
  std::string_view name;
  std::uint64_t factor;
};
// The largest first: printing takes the first that divides.
constexpr unit size_units[] = {
    {"TiB", std::uint64_t{1} << 40}, {"GiB", 1u << 30}, {"MiB", 1u << 20}, {"KiB", 1u << 10}, {"B", 1}, {"", 1}};
constexpr unit time_units[] = {{"h", 3'600'000'000'000}, {"min", 60'000'000'000}, {"s", 1'000'000'000},
                               {"ms", 1'000'000},        {"us", 1'000},           {"ns", 1}};
constexpr unit no_units[] = {{"", 1}};

constexpr std::uint64_t never = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view never_word = "never";

enum class number_fault : std::uint8_t { none, no_number, too_large, fraction, unit };

struct read_number {
  std::uint64_t value = 0;
  number_fault fault = number_fault::none;
  std::string_view unit;
};

read_number read(std::string_view text, std::span<const unit> units) noexcept {
  read_number out;
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0) {
    out.fault = number_fault::no_number;
    return out;
  }
  out.unit = text.substr(digits);
  const auto [end, failed] = std::from_chars(text.data(), text.data() + digits, out.value);
  if (failed != std::errc{}) {
    out.fault = number_fault::too_large;
    return out;
  }
  if (out.unit.starts_with('.') || out.unit.starts_with(',')) {
    out.fault = number_fault::fraction;
    return out;
  }
  const auto found = std::ranges::find(units, out.unit, &unit::name);
  if (found == units.end())
    out.fault = number_fault::unit;
  else if (__builtin_mul_overflow(out.value, found->factor, &out.value))
    out.fault = number_fault::too_large;
  return out;
}

std::string print_number(std::uint64_t value, std::span<const unit> units) {
  for (const unit& u : units)
    if (value % u.factor == 0 && value != 0 && u.factor != 1) return std::to_string(value / u.factor).append(u.name);
  return std::to_string(value);
}

std::string print_size(std::uint64_t bytes) {
  // What divides by nothing is shown in bytes; the limit of 64 bits as what it is one short of.
  if (bytes == std::numeric_limits<std::uint64_t>::max()) return std::to_string(bytes);
  return print_number(bytes, size_units);
}

std::string print_time(std::uint64_t ns) {
  if (ns == 0) return "0s";
  std::string text = print_number(ns, time_units);
  if (text.back() >= '0' && text.back() <= '9') text += "ns";
  return text;
}

// What somebody may have meant by a unit that is none.
std::string_view meant(option_kind kind, std::string_view wrong) noexcept {
  struct guess {
    std::string_view wrong, right;
  };
  constexpr guess sizes[] = {{"k", "KiB"},   {"K", "KiB"},  {"m", "MiB"},   {"M", "MiB"},   {"g", "GiB"},
                             {"G", "GiB"},   {"t", "TiB"},  {"T", "TiB"},   {"kb", "KiB"},  {"mb", "MiB"},
                             {"gb", "GiB"},  {"tb", "TiB"}, {"kB", "KiB"},  {"KB", "KiB"},  {"MB", "MiB"},
                             {"GB", "GiB"},  {"TB", "TiB"}, {"kib", "KiB"}, {"mib", "MiB"}, {"gib", "GiB"},
                             {"tib", "TiB"}, {"kiB", "KiB"}};
  constexpr guess times[] = {{"m", "min or ms"}, {"sec", "s"},    {"secs", "s"}, {"seconds", "s"}, {"M", "min"},
                             {"minutes", "min"}, {"mins", "min"}, {"S", "s"},    {"hours", "h"},   {"H", "h"},
                             {"µs", "us"},       {"msec", "ms"},  {"usec", "us"}};
  for (const guess& g : kind == option_kind::size ? std::span<const guess>(sizes) : std::span<const guess>(times))
    if (g.wrong == wrong) return g.right;
  return {};
}

std::string_view example(option_kind kind) noexcept {
  return kind == option_kind::size ? "bytes or with KiB, MiB, GiB, TiB, as 64MiB"
                                   : "with ns, us, ms, s, min or h, as 250ms";
}

std::string not_a(const option_description& what, std::string_view text, const read_number& found) {
  std::string out = in_quotes(text);
  const bool is_time = what.kind == option_kind::duration || what.kind == option_kind::duration_or_never;
  if (what.kind == option_kind::count) {
    out += found.fault == number_fault::too_large ? " is more than 64 bits hold" : " is no whole number";
    return out + "; " + range_text(what);
  }
  switch (found.fault) {
    case number_fault::fraction: out += " is a fraction: use a smaller unit"; break;
    case number_fault::too_large: out += " is more than can be counted"; break;
    case number_fault::unit:
      if (is_time && found.unit.empty())
        out += " has no unit";
      else if (const std::string_view right = meant(what.kind, found.unit); !right.empty())
        out.append(" is ambiguous or unknown: write ").append(right);
      else
        out += " has an unknown unit";
      break;
    default: out += is_time ? " is no duration" : " is no size";
  }
  return out.append("; ").append(example(what.kind)).append(", ").append(range_text(what));
}

bool is_printable(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte != 0x7f;
}

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Calls `take` with each part of `text`; stops and answers false when it does.
template <class Take>
bool each_part(std::string_view text, char separator, Take take) {
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    if (!take(text.substr(begin, end - begin))) return false;
    if (end == text.size()) return true;
    begin = end + 1;
  }
}

bool is_choice(const option_description& what, std::string_view text) {
  return !each_part(what.choices, '|', [text](std::string_view one) { return one != text; });
}

std::unexpected<std::string> wrong(std::string sentence) { return std::unexpected(std::move(sentence)); }

std::expected<option_value, std::string> parse_number(const option_description& what, std::string_view text) {
  option_value out;
  if (what.kind == option_kind::duration_or_never && text == never_word) {
    out.number = never;
    return out;
  }
  const std::span<const unit> units = what.kind == option_kind::size    ? std::span<const unit>(size_units)
                                      : what.kind == option_kind::count ? std::span<const unit>(no_units)
                                                                        : std::span<const unit>(time_units);
  const read_number found = read(text, units);
  if (found.fault != number_fault::none) return wrong(not_a(what, text, found));
  out.number = found.value;
  // The largest duration is the word never, and nothing else.
  const bool outside = found.value < what.low || found.value > what.high ||
                       (what.kind == option_kind::duration_or_never && found.value == never);
  if (outside) return wrong(in_quotes(text) + " is outside its range, " + range_text(what));
  return out;
}

std::expected<option_value, std::string> parse_list(const option_description& what, std::string_view text) {
  option_value out;
  const bool complete = each_part(text, ',', [&out](std::string_view one) {
    one = trimmed(one);
    if (one.empty()) return false;
    if (!out.text.empty()) out.text += ',';
    out.text += one;
    return true;
  });
  if (!complete) return wrong(in_quotes(text) + " has an empty entry; words, separated by commas");
  if (std::string sentence = objection(what, out); !sentence.empty()) return wrong(std::move(sentence));
  return out;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::string out = "'";
  for (const char c : text.substr(0, longest)) out += is_printable(c) ? c : '?';
  // A character of several bytes that was cut is no character.
  if (text.size() > longest) {
    while (out.size() > 1 && (static_cast<unsigned char>(out.back()) & 0xc0) == 0x80) out.pop_back();
    if (out.size() > 1 && (static_cast<unsigned char>(out.back()) & 0xc0) == 0xc0) out.pop_back();
    out += "...";
  }
  return out += '\'';
}

option_value initial_of(const option_description& what) {
  return {what.initial.number, std::string(what.initial.text)};
}

std::string objection(const option_description& what, const option_value& value) {
  switch (what.kind) {
    case option_kind::choice:
      return is_choice(what, value.text) ? "" : in_quotes(value.text) + " is none of " + range_text(what);
    case option_kind::text:
    case option_kind::list:
      if (!std::ranges::all_of(value.text, is_printable))
        return in_quotes(value.text) + " has characters that no text may have; " + range_text(what);
      if (value.text.size() >= what.low && value.text.size() <= what.high) return "";
      return (value.text.empty() ? std::string("it is empty") : in_quotes(value.text) + " is too short or too long") +
             "; " + range_text(what);
    default:
      if (value.number >= what.low && value.number <= what.high) return "";
      return in_quotes(print_value(what, value)) + " is outside its range, " + range_text(what);
  }
}

std::expected<option_value, std::string> parse_value(const option_description& what, std::string_view text) {
  if (what.kind == option_kind::boolean) {
    if (text != "true" && text != "false") return wrong(in_quotes(text) + " is neither true nor false");
    return option_value{text == "true" ? 1u : 0u, {}};
  }
  if (is_number(what.kind)) return parse_number(what, text);
  if (what.kind == option_kind::list) return parse_list(what, text);
  option_value out{0, std::string(text)};
  if (std::string sentence = objection(what, out); !sentence.empty()) return wrong(std::move(sentence));
  return out;
}

std::string print_value(const option_description& what, const option_value& value) {
  switch (what.kind) {
    case option_kind::size: return print_size(value.number);
    case option_kind::count: return std::to_string(value.number);
    case option_kind::duration: return print_time(value.number);
    case option_kind::duration_or_never:
      return value.number == never ? std::string(never_word) : print_time(value.number);
    case option_kind::boolean: return value.number != 0 ? "true" : "false";
    default: return value.text;
  }
}

std::string range_text(const option_description& what) {
  switch (what.kind) {
    case option_kind::boolean: return "true or false";
    case option_kind::choice: {
      std::string out;
      each_part(what.choices, '|', [&](std::string_view one) {
        const bool last = one.data() + one.size() == what.choices.data() + what.choices.size();
        if (!out.empty()) out += last ? " or " : ", ";
        out += one;
        return true;
      });
      return out;
    }
    case option_kind::text:
    case option_kind::list: return std::to_string(what.low) + " to " + std::to_string(what.high) + " characters";
    default: break;
  }
  const bool endless =
      what.high == (is_number(what.kind) && what.kind != option_kind::size && what.kind != option_kind::count
                        ? never
                        : std::numeric_limits<std::uint64_t>::max());
  std::string out = endless ? print_value(what, {what.low, {}}) + " or more"
                            : "from " + print_value(what, {what.low, {}}) + " to " + print_value(what, {what.high, {}});
  if (what.kind == option_kind::duration_or_never) out += ", or never";
  return out;
}

std::string_view kind_text(option_kind kind) noexcept {
  switch (kind) {
    case option_kind::size: return "size";
    case option_kind::count: return "number";
    case option_kind::duration: return "duration";
    case option_kind::duration_or_never: return "duration or never";
    case option_kind::boolean: return "true or false";
    case option_kind::choice: return "choice";
    case option_kind::text: return "text";
    case option_kind::list: return "list";
  }
  return "";
}

}  // namespace holdfast::inline HOLDFAST_ABI::options
