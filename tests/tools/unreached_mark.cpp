// holdfast-sim with a mark that no run can reach, for the test of what the tools say about it.
#include <properties/marks/mark.hpp>

namespace {

using namespace holdfast::marks;

bool never(const logged_event&) { return false; }

const mark_registrar<single_event<hardware_event::calm_began, never>> unreached{"T-M1", "the impossible happened"};

}  // namespace
