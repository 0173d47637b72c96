// Reads a trace file, strictly.
//
// Why this exists: traces come from other machines, other versions and from people. What is not understood is
// refused with the number of its line; nothing is guessed.
//
// Units       Lines from 1. Threading: one thread.
// Failure     One sentence: "file:12: ...".
#pragma once

#include <sim/trace/trace.hpp>

#include <expected>
#include <string>

namespace holdfast::sim {

/// Plain, or compressed if the name ends in ".zst".
std::expected<trace_file, std::string> read_trace(const std::string& path);

}  // namespace holdfast::sim
