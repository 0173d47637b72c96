#include <holdfast/platform/abi.hpp>

#include <holdfast/transport/settings.hpp>

#include <holdfast/options/check.hpp>

namespace holdfast::inline HOLDFAST_ABI::transport {

result<void> validate(const settings& values) noexcept {
  constexpr const char* operation = "transport.settings";
#define HOLDFAST_TRANSPORT_OPTION(name, member, ...)                                                                  \
  if (auto ok = options::check_member(options::option_id::transport_##name, operation, #member, values.member); !ok) \
    return ok;
#include <holdfast/options/options.def>
  if (values.epoch == 0) return fail_with_words(error_code::out_of_range, operation, "epoch 0: they count from 1");
  return {};
}

}  // namespace holdfast::inline HOLDFAST_ABI::transport
