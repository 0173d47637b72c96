// Who this program is: the build id that the linker wrote into it.
//
// Why this exists: steps, choices and fingerprint of a trace are promised only for the program that wrote it.
//
// Threading   Any. Failure: empty if the program carries no build id.
#pragma once

#include <string>

namespace holdfast::sim {

/// Hexadecimal digits of the GNU build-id note of the running executable.
const std::string& build_id();

}  // namespace holdfast::sim
