#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/identity_seed.hpp>

#include <holdfast/platform/stop_process.hpp>

#include <sys/random.h>

#include <cerrno>

namespace holdfast::inline HOLDFAST_ABI::platform {

std::uint64_t identity_seed::draw() noexcept {
  for (;;) {
    std::uint64_t drawn = 0;
    const auto bytes = ::getrandom(&drawn, sizeof drawn, 0);
    if (bytes == sizeof drawn && drawn != 0) return drawn;
    // A guessed identity would let a stale key of another process pass for a fresh one.
    if (bytes < 0 && errno != EINTR) stop_process("the system's random source refused to answer");
  }
}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
