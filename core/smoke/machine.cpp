#include <holdfast/platform/abi.hpp>

#include "smoke/machine.hpp"

namespace holdfast::smoke {

namespace {

fact words(std::string name, std::string text) { return {std::move(name), std::move(text), 0, false}; }
fact number(std::string name, std::uint64_t value) { return {std::move(name), {}, value, true}; }

fact limit(std::string name, std::uint64_t bytes) {
  return bytes == UINT64_MAX ? words(std::move(name), "unlimited") : number(std::move(name), bytes);
}

}  // namespace

std::string limits_text(const lock_limits& limits) {
  const auto shown = [](std::uint64_t bytes) {
    return bytes == UINT64_MAX ? std::string("unlimited") : bytes_text(bytes);
  };
  return "RLIMIT_MEMLOCK " + shown(limits.soft_bytes) + " (hard " + shown(limits.hard_bytes) + ")";
}

std::vector<fact> machine_facts() {
  std::vector<fact> out;
  if (const tool::operating_system system = tool::system_name(); !system.name.empty()) {
    out.push_back(words("system", system.name));
    out.push_back(words("architecture", system.architecture));
  }
  out.push_back(number("processors", tool::processors()));
  if (const std::uint64_t bytes = tool::memory_bytes(); bytes != 0) out.push_back(number("memory_bytes", bytes));
  out.push_back(number("page_bytes", tool::page_bytes()));
  const lock_limits limits = locked_memory_limits();
  out.push_back(limit("locked_bytes_soft", limits.soft_bytes));
  out.push_back(limit("locked_bytes_hard", limits.hard_bytes));
  if (const auto maps = tool::mappings().limit) out.push_back(number("max_map_count", *maps));
  out.push_back(words("version", HOLDFAST_VERSION));
  out.push_back(words("build", program_build_id()));
  return out;
}

}  // namespace holdfast::smoke
