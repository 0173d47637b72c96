#include <holdfast/platform/driver_library.hpp>

#include <sim/drivers/symbols.hpp>
#include <sim/faults/fault_plan.hpp>
#include <sim/platform/side.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

std::expected<driver_library, std::string> driver_library::open(const char* file, std::span<const environment_setting>) {
  sim::world* const w = sim::scheduling_world();
  if (w == nullptr) sim::misuse("a driver library was opened outside any fiber");
  w->point(sim::op_kind::driver_call);
  bool hidden = false;
  {
    sim::kernel_scope kernel;
    hidden = sim::fault_plan::of(*w).strike(*w->running()->owner, "driver.open") != nullptr ||
             !sim::has_driver_library(file);
  }
  if (hidden) return std::unexpected(std::string(file) + ": cannot open shared object file: No such file or directory");
  return driver_library(file);
}

void* driver_library::symbol(const char* name) const noexcept {
  sim::kernel_scope kernel;
  return sim::find_driver_symbol(file_, name);
}

std::string environment_value(const char*) { return {}; }

}  // namespace holdfast::inline HOLDFAST_ABI::platform
