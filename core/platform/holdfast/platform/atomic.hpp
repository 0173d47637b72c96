// Real atomics: std::atomic, under the name that the simulated side instruments. Clauses A1 and A2.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <atomic>

namespace holdfast::inline HOLDFAST_ABI::platform {

/// T is an integer, an enumeration, a bool or a pointer.
template <class T>
using atomic = std::atomic<T>;

}  // namespace holdfast::inline HOLDFAST_ABI::platform
