#include <sim/trace/trace.hpp>

namespace holdfast::sim {

std::string_view name_of(trace_outcome outcome) noexcept {
  switch (outcome) {
    case trace_outcome::clean: return "clean";
    case trace_outcome::violation: return "violation";
    case trace_outcome::crash: return "crash";
  }
  return "";
}

std::string_view core_id() noexcept {
#ifdef HOLDFAST_MUTANT_ID
  return HOLDFAST_MUTANT_ID;
#else
  return "clean";
#endif
}

}  // namespace holdfast::sim
