// Archetype of V1 to V3: no predicates, no relative times, no lock objects.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/clock.hpp>
#include <holdfast/platform/mutex.hpp>

namespace holdfast::inline HOLDFAST_ABI::platform {

class condition_variable {
 public:
  condition_variable();
  ~condition_variable();
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;
  void wait(mutex& held) HOLDFAST_REQUIRES(held);
  bool wait_until(mutex& held, time_point deadline) HOLDFAST_REQUIRES(held);
  void notify_one() noexcept;
  void notify_all() noexcept;
};

}  // namespace holdfast::inline HOLDFAST_ABI::platform
