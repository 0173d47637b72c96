#include <holdfast/platform/abi.hpp>

#include <holdfast/runtime/configured.hpp>

#include <string>
#include <type_traits>

namespace holdfast::inline HOLDFAST_ABI {

namespace {

using options::option_id;

// The member's own type decides which half of a value it takes.
template <class Member>
void put(Member& member, const options::configuration& from, option_id which) {
  if constexpr (std::is_same_v<Member, std::string>)
    member = from.text(which);
  else if constexpr (std::is_same_v<Member, platform::duration>)
    member = platform::duration(static_cast<std::int64_t>(from.number(which)));
  else
    member = static_cast<Member>(from.number(which));
}

event_level level_named(const std::string& name) noexcept {
  if (name == "trace") return event_level::trace;
  if (name == "info") return event_level::info;
  if (name == "warn") return event_level::warn;
  if (name == "error") return event_level::error;
  return event_level::debug;
}

}  // namespace

runtime_options configured_runtime(const options::configuration& from) {
  runtime_options out;
  pinned::settings& values = out.pinned;
#define HOLDFAST_PINNED_OPTION(name, member, ...) put(values.member, from, option_id::pinned_##name);
#include <holdfast/options/options.def>
  put(out.recorded_events, from, option_id::runtime_recorded_events);
  out.recorded_level = level_named(from.text(option_id::runtime_recorded_level));
  return out;
}

ucx_device_options configured_ucx(const options::configuration& from) {
  ucx_device_options out;
  transport::settings& values = out.transport;
#define HOLDFAST_TRANSPORT_OPTION(name, member, ...) put(values.member, from, option_id::transport_##name);
#include <holdfast/options/options.def>
  put(out.wire.transports, from, option_id::transport_transports);
  put(out.wire.devices, from, option_id::transport_devices);
  put(out.wire.fork_policy, from, option_id::transport_fork_policy);
  put(out.library, from, option_id::transport_ucx_library);
  return out;
}

}  // namespace holdfast::inline HOLDFAST_ABI
