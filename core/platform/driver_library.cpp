#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/driver_library.hpp>

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace holdfast::inline HOLDFAST_ABI::platform {

std::expected<driver_library, std::string> driver_library::open(const char* file,
                                                                std::span<const environment_setting> settings) {
  for (const auto& setting : settings)
    if (::setenv(setting.name, setting.value, 1) != 0)
      return std::unexpected(std::string("cannot set ") + setting.name + ": " + std::strerror(errno));
  // Local: the names of a driver are nobody else's business, and its own plugins find them by their dependencies.
  // RTLD_NODELETE holds the library even against a dlclose by somebody else who opened it.
  void* const handle = ::dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* const sentence = ::dlerror();
    return std::unexpected(sentence != nullptr ? std::string(sentence) : std::string(file) + ": cannot be loaded");
  }
  return driver_library(handle);
}

void* driver_library::symbol(const char* name) const noexcept { return ::dlsym(handle_, name); }

std::string environment_value(const char* name) {
  const char* const value = ::getenv(name);
  return value != nullptr ? std::string(value) : std::string();
}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
