#include <holdfast/platform/abi.hpp>

#include <holdfast/transport/settings.hpp>

#include <holdfast/options/check.hpp>

namespace holdfast::inline HOLDFAST_ABI::transport {

result<void> validate(const settings& values) noexcept {
  constexpr const char* operation = "transport.settings";
#define HOLDFAST_TRANSPORT_OPTION(name, member, ...)                                                                 \
  if (auto ok = options::check_member(options::option_id::transport_##name, operation, #member, values.member); !ok) \
    return ok;
#include <holdfast/options/options.def>
  if (values.peer_suspect_after.count() != 0 && values.peer_suspect_after < std::chrono::milliseconds(100))
    return fail_with_words(error_code::out_of_range, operation, "peer_suspect_after: 0, or 100 ms and more", 0,
                           static_cast<std::uint64_t>(values.peer_suspect_after.count()));
  if (values.epoch == 0) return fail_with_words(error_code::out_of_range, operation, "epoch 0: they count from 1");
  return {};
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
