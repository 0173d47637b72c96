#include <holdfast/platform/abi.hpp>

#include "smoke/options.hpp"

#include "smoke/program.hpp"

#include <algorithm>
#include <string_view>

namespace holdfast::smoke {

namespace {

/// What the contract of the tools names and this version does not have.
constexpr std::string_view later[] = {"--calibrate"};

}  // namespace

std::optional<options> parse(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (std::ranges::find(later, word.substr(0, word.find('='))) != std::end(later))
      throw usage_error{"'" + std::string(word) + "' is not in this version"};
  }
  const auto given = tool::command_line::parse(described_program, argc, argv);
  if (!given) return std::nullopt;
  const auto text = [&given](std::string_view name) {
    const auto value = given->value(name);
    return value ? value->text : std::string();
  };
  const auto number = [&given](std::string_view name) {
    const auto value = given->value(name);
    return value ? std::optional(value->number) : std::nullopt;
  };
  const std::vector<std::string> only = given->texts("--only");
  const auto wanted = [&only](std::string_view part) {
    return only.empty() || std::ranges::find(only, part) != only.end();
  };
  options out;
  out.ucx = wanted("ucx");
  out.verbs = wanted("verbs");
  out.cuda = wanted("cuda");
  out.host = wanted("host");
  out.bytes = *number("--bytes");
  out.peers = static_cast<unsigned>(*number("--peers"));
  out.seconds = std::chrono::nanoseconds(*number("--seconds"));
  out.record = text("--record");
  if (out.record.ends_with(".zst"))
    throw usage_error{"--record: '" + out.record + "' is compressed by name, and recordings are written plain"};
  out.json = given->has("--json");
  out.ucx_library = text("--ucx-library");
  out.serve_seed = number("--serve");
  out.serve_parent = static_cast<int>(number("--parent").value_or(0));
  return out;
}

}  // namespace holdfast::smoke
