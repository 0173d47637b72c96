// The simulated process: see the real header. The machine is the one that the host was placed on.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace holdfast::inline HOLDFAST_ABI::platform {

/// Equal in two processes exactly if they run on one machine and see one memory file system; zeros: unknown.
struct machine_identity {
  std::array<std::byte, 16> boot{};
  std::uint64_t file_device = 0;
  std::uint64_t file_number = 0;
  bool known() const noexcept { return file_number != 0; }
  friend bool operator==(const machine_identity&, const machine_identity&) = default;
};
machine_identity this_machine() noexcept;

/// Number of this process; a forked child has another one. Never 0.
std::uint64_t process_number() noexcept;

/// In the order of the event `signal_owner`.
enum class signal_handler : std::uint8_t { system, ignored, library, program, unknown };
struct signal_state {
  int number = 0;
  signal_handler owner = signal_handler::unknown;
};

/// In the order of the event `fork_protection`.
enum class fork_guard : std::uint8_t { not_needed, kernel, library, none };

struct process_facts {
  /// Whether the process's mmap or munmap begins with a jump to somewhere else.
  bool memory_functions_patched = false;
  /// SIGSEGV, SIGBUS, SIGHUP.
  std::array<signal_state, 3> signals{};
  /// What the process may lock at most; UINT64_MAX: no limit, or one that does not bind it.
  std::uint64_t lockable_bytes_max = UINT64_MAX;
};
process_facts look_at_process() noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::platform
