#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/stop_process.hpp>

#include <sys/uio.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace holdfast::inline HOLDFAST_ABI::platform {

void stop_process(const char* what) noexcept {
  // One system call and no stream: memory may be broken, and two threads may come here at once.
  static constexpr char before[] = "holdfast: ";
  static constexpr char after[] = "\n";
  const iovec parts[] = {
      {const_cast<char*>(before), sizeof before - 1},
      {const_cast<char*>(what), std::strlen(what)},
      {const_cast<char*>(after), sizeof after - 1},
  };
  [[maybe_unused]] const auto written = ::writev(STDERR_FILENO, parts, 3);
  std::abort();
}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
