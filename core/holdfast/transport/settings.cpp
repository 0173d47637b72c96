#include <holdfast/platform/abi.hpp>

#include <holdfast/transport/settings.hpp>

namespace holdfast::inline HOLDFAST_ABI::transport {

namespace {

using namespace std::chrono_literals;

std::unexpected<error> wrong(const char* words, std::uint64_t value) noexcept {
  return fail_with_words(error_code::invalid_argument, "transport.settings", words, 0, value);
}

bool within(std::uint64_t value, std::uint64_t low, std::uint64_t high) noexcept { return value >= low && value <= high; }

}  // namespace

result<void> validate(const settings& values) noexcept {
  if (values.listen_address.empty()) return wrong("listen_address: an address and a port", 0);
  if (values.epoch == 0) return wrong("epoch: from 1", 0);
  if (values.progress_spin < 0ns || values.progress_spin > 10ms)
    return wrong("progress_spin: 0 to 10 ms", static_cast<std::uint64_t>(values.progress_spin.count()));
  if (!within(values.progress_batch, 1, 65536)) return wrong("progress_batch: 1 to 65536", values.progress_batch);
  if (!within(values.max_operations, 16, std::uint64_t{1} << 24))
    return wrong("max_operations: 16 to 2^24", values.max_operations);
  if (!within(values.max_connections, 2, 65536)) return wrong("max_connections: 2 to 65536", values.max_connections);
  if (!within(values.max_keys, 1, 65536)) return wrong("max_keys: 1 to 65536", values.max_keys);
  if (values.connect_timeout < 10ms || values.connect_timeout > 10min)
    return wrong("connect_timeout: 10 ms to 10 min", static_cast<std::uint64_t>(values.connect_timeout.count()));
  if (values.close_timeout <= 0ns) return wrong("close_timeout: above 0", 0);
  if (values.startup_timeout <= 0ns) return wrong("startup_timeout: above 0", 0);
  if (values.probe_timeout <= 0ns) return wrong("probe_timeout: above 0", 0);
  return {};
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
