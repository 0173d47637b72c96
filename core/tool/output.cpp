#include <holdfast/platform/abi.hpp>

#include "tool/output.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace holdfast::tool {

std::FILE* take_standard_output() {
  const int kept = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (kept < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return stdout;
  std::FILE* const out = ::fdopen(kept, "w");
  return out != nullptr ? out : stdout;
}

}  // namespace holdfast::tool
