#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/process.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::platform {

namespace {

constexpr const char* boot_file = "/proc/sys/kernel/random/boot_id";
// Two containers of one machine have memory file systems of their own, and cannot map each other's files.
constexpr const char* shared_directory = "/dev/shm";

int digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::size_t read_some(const char* path, char* out, std::size_t bytes) noexcept {
  const int descriptor = ::open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  const auto got = ::read(descriptor, out, bytes);
  ::close(descriptor);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

signal_handler owner_of(int number) noexcept {
  struct sigaction now{};
  if (::sigaction(number, nullptr, &now) != 0) return signal_handler::unknown;
  if ((now.sa_flags & SA_SIGINFO) == 0) {
    if (now.sa_handler == SIG_DFL) return signal_handler::system;
    if (now.sa_handler == SIG_IGN) return signal_handler::ignored;
  }
  const void* const handler = (now.sa_flags & SA_SIGINFO) != 0 ? reinterpret_cast<const void*>(now.sa_sigaction)
                                                               : reinterpret_cast<const void*>(now.sa_handler);
  Dl_info where{};
  if (::dladdr(handler, &where) == 0 || where.dli_fname == nullptr) return signal_handler::unknown;
  const std::string_view file(where.dli_fname);
  const std::size_t slash = file.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? file : file.substr(slash + 1);
  return name.starts_with("libucs") || name.starts_with("libucm") ? signal_handler::library : signal_handler::program;
}

// The ways in which libucm's patch, or any other, begins: an absolute jump through a register, or a relative one.
bool begins_with_jump(const void* function) noexcept {
  if (function == nullptr) return false;
  unsigned char first[4];
  std::memcpy(first, function, sizeof(first));
#if defined(__x86_64__)
  if (first[0] == 0xe9 || (first[0] == 0xff && first[1] == 0x25)) return true;
  return first[0] == 0x49 && first[1] == 0xbb;
#else
  return false;
#endif
}

std::uint64_t lockable_bytes() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  char status[4096];
  const std::size_t got = read_some("/proc/self/status", status, sizeof(status));
  const std::string_view text(status, got);
  constexpr std::string_view effective = "CapEff:\t";
  if (const std::size_t at = text.find(effective); at != std::string_view::npos) {
    std::uint64_t capabilities = 0;
    for (std::size_t i = at + effective.size(); i < text.size() && digit(text[i]) >= 0; ++i)
      capabilities = capabilities << 4 | static_cast<std::uint64_t>(digit(text[i]));
    constexpr unsigned ipc_lock = 14;
    if ((capabilities >> ipc_lock & 1) != 0) return UINT64_MAX;
  }
  return limit.rlim_cur;
}

}  // namespace

machine_identity this_machine() noexcept {
  machine_identity found;
  char text[64];
  const std::size_t got = read_some(boot_file, text, sizeof(text));
  std::size_t nibble = 0;
  for (std::size_t i = 0; i < got && nibble < 32; ++i) {
    const int value = digit(text[i]);
    if (value < 0) continue;
    found.boot[nibble / 2] = static_cast<std::byte>(std::to_integer<int>(found.boot[nibble / 2]) << 4 | value);
    ++nibble;
  }
  struct stat where{};
  if (nibble != 32 || ::stat(shared_directory, &where) != 0) return {};
  found.file_device = where.st_dev;
  found.file_number = where.st_ino;
  return found;
}

std::uint64_t process_number() noexcept { return static_cast<std::uint64_t>(::getpid()); }

process_facts look_at_process() noexcept {
  process_facts found;
  constexpr std::array<int, 3> asked{SIGSEGV, SIGBUS, SIGHUP};
  for (std::size_t i = 0; i < asked.size(); ++i) found.signals[i] = {asked[i], owner_of(asked[i])};
  for (const char* const name : {"mmap", "munmap"})
    found.memory_functions_patched = found.memory_functions_patched || begins_with_jump(::dlsym(RTLD_DEFAULT, name));
  found.lockable_bytes_max = lockable_bytes();
  return found;
}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
