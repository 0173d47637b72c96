#include <holdfast/platform/driver_library.hpp>

#include <sim/drivers/symbols.hpp>
#include <sim/faults/fault_plan.hpp>
#include <sim/platform/side.hpp>

#include <map>

namespace holdfast::inline HOLDFAST_ABI::platform {

namespace {

// Of one life of a host: a machine that starts again has what it had at first, nothing. Used in kernel scope.
using environment = std::map<std::string, std::string, std::less<>>;
environment& environment_of(sim::host& h) {
  static constexpr char key = 0;
  return h.state<environment>(&key, [] { return new environment; });
}

}  // namespace

std::expected<driver_library, std::string> driver_library::open(const char* file,
                                                                std::span<const environment_setting> settings) {
  sim::world* const w = sim::scheduling_world();
  if (w == nullptr) sim::misuse("a driver library was opened outside any fiber");
  w->point(sim::op_kind::driver_call);
  bool hidden = false;
  {
    sim::kernel_scope kernel;
    environment& values = environment_of(*w->running()->owner);
    for (const auto& setting : settings) values.insert_or_assign(setting.name, setting.value);
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

std::string environment_value(const char* name) {
  const sim::world* const w = sim::kernel_access::the_world();
  if (w == nullptr || w->running_host() == nullptr) return {};
  const std::string* found = nullptr;
  {
    sim::kernel_scope kernel;
    const environment& values = environment_of(*w->running_host());
    if (const auto at = values.find(name); at != values.end()) found = &at->second;
  }
  return found != nullptr ? *found : std::string();
}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
