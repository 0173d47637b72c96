// What tests of processes share with their program.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstdint>

namespace holdfast::testing::processes {

/// Of `--seed`; 1 without.
std::uint64_t first_seed() noexcept;
/// `--soak SECONDS`: sequences over every lane, each with a seed of its own, until the time is over. Exit status.
int soak(std::uint64_t seconds);

}  // namespace holdfast::testing::processes
