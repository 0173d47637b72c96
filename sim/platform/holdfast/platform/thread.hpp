// Simulated threads: fibers of the host on which they are started. Clauses T1 to T4.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <cstdint>
#include <expected>
#include <functional>
#include <string_view>
#include <utility>

namespace holdfast::sim {
class fiber;
}

namespace holdfast::inline HOLDFAST_ABI::platform {

class thread {
 public:
  thread() noexcept = default;
  thread(thread&& other) noexcept : fiber_(std::exchange(other.fiber_, nullptr)) {}
  thread& operator=(thread&& other) noexcept;
  ~thread();

  /// Fails with EAGAIN where the fault plan says so ("thread.start").
  static std::expected<thread, int> start(std::string_view name, std::move_only_function<void()> body);
  bool joinable() const noexcept { return fiber_ != nullptr; }
  void join();
  void abandon() noexcept;

 private:
  sim::fiber* fiber_ = nullptr;
};

void yield() noexcept;
std::uint64_t this_thread_number() noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::platform
