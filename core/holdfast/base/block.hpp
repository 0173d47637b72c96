// A completion token that blocks the calling thread: `auto r = pool.async_alloc(bytes, holdfast::block);`
//
// Why this exists: tests, scenarios and simple programs want the answer, not a callback. It waits on the platform's
// condition variable, so in the simulator it blocks a fiber.
//
// Ownership   The state is on the caller's stack for the time of the call.
// Threading   Must not be used on a thread of the executor that the answer comes on.
// Failure     If the operation goes away without an answer (its executor was stopped): a signature void(result<U>) gets
//             error_code::shutting_down, any other stops the process.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/thread_annotations.hpp>
#include <holdfast/platform/condition_variable.hpp>
#include <holdfast/platform/mutex.hpp>
#include <holdfast/platform/stop_process.hpp>

#include <boost/asio/async_result.hpp>

#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI {

struct block_t {
  constexpr block_t() noexcept = default;
};
inline constexpr block_t block{};

namespace detail {

/// Wakes one thread, once.
class block_signal {
 public:
  block_signal() noexcept;
  void wait() noexcept;
  void wake() noexcept;

 private:
  platform::mutex mutex_;
  bool woken_ HOLDFAST_GUARDED_BY(mutex_) = false;
  platform::condition_variable changed_;
};

template <class... Args>
struct block_state {
  std::optional<std::tuple<Args...>> values;
  block_signal signal;
};

template <class... Args>
class block_handler {
 public:
  explicit block_handler(block_state<Args...>& state) noexcept : state_(&state) {}
  block_handler(block_handler&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  block_handler& operator=(block_handler&&) = delete;
  // The operation ended without an answer: whoever waits must not wait for ever.
  ~block_handler() {
    if (state_ != nullptr) state_->signal.wake();
  }
  template <class... Values>
  void operator()(Values&&... values) {
    block_state<Args...>* const state = std::exchange(state_, nullptr);
    state->values.emplace(std::forward<Values>(values)...);
    state->signal.wake();
  }

 private:
  block_state<Args...>* state_;
};

template <class T>
struct block_abandoned {
  static T value() noexcept { platform::stop_process("an operation went away without an answer"); }
};
template <class U>
struct block_abandoned<result<U>> {
  static result<U> value() noexcept { return fail(error_code::shutting_down, "block"); }
};

}  // namespace detail

}  // namespace holdfast::inline HOLDFAST_ABI

template <class... Args>
class boost::asio::async_result<holdfast::block_t, void(Args...)> {
  using state_type = holdfast::detail::block_state<std::decay_t<Args>...>;
  using handler_type = holdfast::detail::block_handler<std::decay_t<Args>...>;

 public:
  template <class Initiation, class... InitArgs>
  static auto initiate(Initiation&& initiation, holdfast::block_t, InitArgs&&... arguments) {
    state_type state;
    std::forward<Initiation>(initiation)(handler_type(state), std::forward<InitArgs>(arguments)...);
    state.signal.wait();
    if constexpr (sizeof...(Args) == 0) {
      if (!state.values) holdfast::platform::stop_process("an operation went away without an answer");
    } else if constexpr (sizeof...(Args) == 1) {
      using value_type = std::tuple_element_t<0, std::tuple<std::decay_t<Args>...>>;
      if (!state.values) return holdfast::detail::block_abandoned<value_type>::value();
      return value_type(std::get<0>(std::move(*state.values)));
    } else {
      if (!state.values) holdfast::platform::stop_process("an operation went away without an answer");
      return std::tuple<std::decay_t<Args>...>(std::move(*state.values));
    }
  }
};
