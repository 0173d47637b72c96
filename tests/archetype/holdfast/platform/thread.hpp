// Archetype of T1 to T4: no native handle, no identifier object, no hardware_concurrency.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstdint>
#include <expected>
#include <functional>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::platform {

class thread {
 public:
  thread() noexcept;
  thread(thread&&) noexcept;
  thread& operator=(thread&&) noexcept;
  ~thread();
  static std::expected<thread, int> start(std::string_view name, std::move_only_function<void()> body);
  bool joinable() const noexcept;
  void join();
  void abandon() noexcept;
};

void yield() noexcept;
std::uint64_t this_thread_number() noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::platform
