#include <holdfast/platform/abi.hpp>

#include <holdfast/transport/capabilities.hpp>

#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::transport {

namespace {

constexpr std::string_view owner_names[] = {"system", "ignored", "library", "program", "unknown"};
constexpr std::string_view guard_names[] = {"not_needed", "kernel", "library", "none"};

void put_text(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  out += '"';
}

void put(std::string& out, std::string_view name, bool value) {
  out.append(", \"").append(name).append(value ? "\": true" : "\": false");
}

void put(std::string& out, std::string_view name, std::uint64_t value) {
  out.append(", \"").append(name).append("\": ").append(std::to_string(value));
}

void put(std::string& out, std::string_view name, std::string_view value) {
  out.append(", \"").append(name).append("\": ");
  put_text(out, value);
}

}  // namespace

std::uint64_t capabilities::flags() const noexcept {
  std::uint64_t bits = 0;
  unsigned at = 0;
  for (const bool one :
       {untested_version, get_works, get_uses_memh, shares_memory, destroy_is_fence, registrations_distinct,
        inline_exit_seen, callback_exit_seen, process.memory_functions_patched})
    bits |= std::uint64_t{one} << at++;
  return bits;
}

std::string capabilities::to_json() const {
  std::string out = "{\"library\": ";
  put_text(out, library.text);
  put(out, "transports", wire.transports);
  put(out, "threads", wire.thread_safe);
  put(out, "gets_take_turns", wire.gets_take_turns);
  put(out, "untested_version", untested_version);
  put(out, "get_works", get_works);
  if (get_absent_because) put(out, "get_absent_because", std::string_view(get_absent_because->text()));
  put(out, "get_uses_memh", get_uses_memh);
  put(out, "shares_memory", shares_memory);
  if (shared_memory_absent_because)
    put(out, "shared_memory_absent_because", std::string_view(shared_memory_absent_because->text()));
  put(out, "lane", std::string_view(get_works ? "emulated" : "none"));
  put(out, "destroy_is_fence", destroy_is_fence);
  put(out, "unmap_verdict", std::string_view("assumed"));
  put(out, "registrations_distinct", registrations_distinct);
  put(out, "inline_exit_seen", inline_exit_seen);
  put(out, "callback_exit_seen", callback_exit_seen);
  put(out, "am_header_bytes_max", std::uint64_t{wire.am_header_bytes_max});
  put(out, "worker_address_bytes", std::uint64_t{wire.worker_address_bytes});
  put(out, "memory_functions_patched", process.memory_functions_patched);
  for (const platform::signal_state& one : process.signals)
    put(out, "signal_" + std::to_string(one.number), owner_names[static_cast<std::size_t>(one.owner)]);
  put(out, "fork_protection", guard_names[static_cast<std::size_t>(fork)]);
  if (process.lockable_bytes_max != UINT64_MAX) put(out, "lockable_bytes_max", process.lockable_bytes_max);
  return out += '}';
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
