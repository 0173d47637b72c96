// All probes, in order of name.
#include "probe.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace holdfast::driver_probe {

std::span<const probe* const> all_probes() {
  static const std::vector<const probe*> all = [] {
    std::vector<const probe*> found;
    for (const auto some :
         {progress_probes(), endpoint_probes(), loss_probes(), transfer_probes(), message_probes(), memory_probes()}) {
      for (const probe& p : some) found.push_back(&p);
    }
    std::ranges::sort(found, {}, [](const probe* p) { return std::string_view(p->name); });
    return found;
  }();
  return all;
}

}  // namespace holdfast::driver_probe
