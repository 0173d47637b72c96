// Strategies by name.
//
// Why this exists: a strategy is written on a command line and in a trace, in one spelling.
//
// Failure     A sentence that names what is wrong and what may be written.
#pragma once

#include <sim/kernel/strategy.hpp>

#include <expected>
#include <memory>
#include <string>

namespace holdfast::sim {

/// "fifo", "random", "random:stay=700,time=20", "pct:3", "pct:3,2000", "exhaustive:2". A replay needs a record and is
/// made by its constructor. `strategy::name` gives the canonical text after a run began: with the weights or the length
/// that the run drew, if none were given. That text and the seed make the same choices again.
std::expected<std::unique_ptr<strategy>, std::string> make_strategy(const std::string& text);

}  // namespace holdfast::sim
