// Real threads. Clauses T1 to T4.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/thread_annotations.hpp>

#include <cstdint>
#include <expected>
#include <functional>
#include <string_view>
#include <thread>

namespace holdfast::inline HOLDFAST_ABI::platform {

/// A thread that is joined before it is destroyed; destroying a joinable one stops the process.
class thread {
 public:
  thread() noexcept = default;
  thread(thread&&) noexcept = default;
  thread& operator=(thread&&) noexcept = default;

  /// Starts `body` on a new thread named `name` (15 characters are shown by the system), with all
  /// asynchronous signals blocked. The error is an errno value; nothing was started then.
  static std::expected<thread, int> start(std::string_view name, std::move_only_function<void()> body);

  bool joinable() const noexcept { return native_.joinable(); }
  void join() { native_.join(); }
  /// Leaves the thread running for ever: for threads that are stuck inside a driver.
  void abandon() noexcept { native_.detach(); }

 private:
  std::thread native_;
};

/// A hint that somebody else could run; a scheduling point in the simulator.
inline void yield() noexcept { std::this_thread::yield(); }

/// A number for the calling thread, unique among living threads; 0 is never one.
std::uint64_t this_thread_number() noexcept;

}  // namespace holdfast::inline HOLDFAST_ABI::platform
