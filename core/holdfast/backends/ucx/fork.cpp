#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/ucx/fork.hpp>
#include <holdfast/platform/driver_library.hpp>

namespace holdfast::inline HOLDFAST_ABI::ucx {

namespace {

constexpr const char* verbs_library = "libibverbs.so.1";
// Of ibv_is_fork_initialized.
constexpr int verbs_fork_enabled = 1;
constexpr int verbs_fork_unneeded = 2;

}  // namespace

result<platform::fork_guard> protect_from_fork(std::string_view policy, bool device_lanes) noexcept {
  if (!device_lanes || policy == "off")
    return device_lanes ? platform::fork_guard::none : platform::fork_guard::not_needed;
  platform::fork_guard found = platform::fork_guard::none;
  try {
    if (const auto verbs = platform::driver_library::open(verbs_library, {})) {
      const auto state = reinterpret_cast<int (*)()>(verbs->symbol("ibv_is_fork_initialized"));
      const auto protect = reinterpret_cast<int (*)()>(verbs->symbol("ibv_fork_init"));
      const int is = state != nullptr ? state() : 0;
      if (is == verbs_fork_unneeded)
        found = platform::fork_guard::kernel;
      else if (is == verbs_fork_enabled || (protect != nullptr && protect() == 0))
        found = platform::fork_guard::library;
    } else {
      // No verbs, so no device of theirs; what else the operator named is his to know.
      return platform::fork_guard::none;
    }
  } catch (const std::bad_alloc&) {
    return fail(error_code::out_of_memory, "ucx.fork");
  }
  if (found == platform::fork_guard::none && policy == "refuse")
    return fail_with_words(error_code::absent, "ucx.fork",
                           "ibv_fork_init refuses now; transport.fork_policy is refuse");
  return found;
}

}  // namespace holdfast::inline HOLDFAST_ABI::ucx
