#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace holdfast::inline HOLDFAST_ABI {

static_assert(std::is_trivially_copyable_v<error>);

namespace {

struct description {
  std::string_view name;
  std::string_view labels[3];
  std::string_view advice;
};

constexpr description table[] = {
    {"invalid_argument", {}, "correct the call"},
    {"out_of_range", {"offset", "length", "size"}, "correct the length or the range"},
    {"invalid_state", {}, "call it at another time, see the operation"},
    {"not_configured", {}, "switch the part on, or do without this operation"},
    {"absent", {}, "install or enable what is missing, then start again"},
    {"shutting_down", {}, "stop; this object takes no new work"},
    {"cancelled", {}, "nothing to do; what was started ends on its own"},
    {"timed_out", {}, "nothing to do; what was started ends on its own"},
    {"out_of_memory", {"bytes"}, "try again when memory is free"},
    {"budget_exceeded", {"requested", "registered", "budget"}, "free buffers, or raise registered_bytes_budget"},
    {"limit_exceeded", {"need", "limit", "in_use"}, "raise the limit that the operation names"},
    {"busy", {"limit"}, "try again later"},
    {"corrupt", {}, "stop using this object and report the recording"},
    {"unreachable", {}, "connect to the peer first"},
    {"peer_lost", {"worker_id", "incarnation"}, "reconnect; the peer is another one then"},
    {"stale_key", {"generation", "incarnation"}, "ask the owner for a new reference"},
    {"bad_key", {"key_bytes"}, "ask the owner for a new reference"},
    {"transfer_failed", {"status"}, "the bytes are unspecified; fetch again or elsewhere"},
    {"indeterminate", {}, "treat the bytes as lost; they stay held until a fence"},
    {"refused", {"status"}, "it is retried within its bound"},
    {"backend", {"status"}, "see the provider's words"},
    {"protocol", {"size", "limit"}, "the peer runs something else; check both versions"},
    {"version_mismatch", {"ours", "theirs"}, "bring both sides to neighboring versions"},
};
static_assert(std::size(table) == static_cast<std::size_t>(error_code::version_mismatch) + 1);

const description& describe(error_code code) noexcept { return table[static_cast<std::size_t>(code)]; }

}  // namespace

std::string_view name_of(error_code code) noexcept { return describe(code).name; }
std::string_view advice_for(error_code code) noexcept { return describe(code).advice; }

void error::set_words(std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), sizeof(words) - 1);
  std::memcpy(words, text.data(), length);
  words[length] = '\0';
}

std::string error::text() const {
  std::string out(operation);
  out += ": ";
  out += name_of(code);
  std::string inside;
  const auto add = [&inside](std::string_view label, std::uint64_t value) {
    inside += inside.empty() ? "" : ", ";
    inside += label;
    inside += ' ';
    inside += std::to_string(value);
  };
  if (identity != 0) add("identity", identity);
  for (std::size_t i = 0; i < 3; ++i)
    if (!describe(code).labels[i].empty()) add(describe(code).labels[i], numbers[i]);
  if (!inside.empty()) out += " (" + inside + ")";
  if (words[0] != '\0') out += std::string(": ") + words;
  out += "; ";
  out += advice_for(code);
  return out;
}

std::unexpected<error> fail(error_code code, const char* operation, std::uint64_t identity, std::uint64_t a,
                            std::uint64_t b, std::uint64_t c) noexcept {
  error made;
  made.code = code;
  made.operation = operation;
  made.identity = identity;
  made.numbers[0] = a;
  made.numbers[1] = b;
  made.numbers[2] = c;
  return std::unexpected(made);
}

std::unexpected<error> fail_with_words(error_code code, const char* operation, std::string_view words,
                                       std::uint64_t identity, std::uint64_t a) noexcept {
  auto made = fail(code, operation, identity, a);
  made.error().set_words(words);
  return made;
}

}  // namespace holdfast::inline HOLDFAST_ABI
