// The doubles of driver functions, by the names that the real libraries export.
//
// Ownership   Functions. Threading: callable from anywhere.
// Failure     Null: the library does not export it, or there is no double of the library.
#pragma once

#include <string_view>

namespace holdfast::sim {

/// "libucp.so.0" and "libucs.so.0".
bool has_driver_library(std::string_view library) noexcept;
void* find_driver_symbol(std::string_view library, std::string_view name) noexcept;

}  // namespace holdfast::sim
