#include <holdfast/platform/process.hpp>

#include <sim/hardware/fabric.hpp>
#include <sim/platform/side.hpp>

#include <csignal>

namespace holdfast::inline HOLDFAST_ABI::platform {

machine_identity this_machine() noexcept {
  sim::world* const w = sim::scheduling_world();
  if (w == nullptr) return {};
  sim::kernel_scope kernel;
  machine_identity found;
  found.file_device = 1;
  found.file_number = std::uint64_t{sim::fabric::of(*w).machine_of(*w->running()->owner)} + 1;
  return found;
}

std::uint64_t process_number() noexcept {
  const sim::world* const w = sim::scheduling_world();
  if (w == nullptr) return 1;
  const sim::host& here = *w->running()->owner;
  return (std::uint64_t{here.index()} << 32) + here.life();
}

process_facts look_at_process() noexcept {
  process_facts found;
  found.signals = {
      {{SIGSEGV, signal_handler::system}, {SIGBUS, signal_handler::system}, {SIGHUP, signal_handler::system}}};
  return found;
}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
