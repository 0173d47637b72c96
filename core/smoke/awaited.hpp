// An answer that may not come: waits for it to a bound, on a thread of one's own.
//
// Why this exists: `holdfast::block` waits for ever, and a check of a machine must end even if the machine does not
// answer. Also says when the answer came, which is what deadlines are about.
//
// Ownership   The state is shared with the handler, so that a late answer finds it.
// Units       Absolute steady time.
// Threading   The handler on any thread; the rest on one.
// Failure     None: no answer by the bound is `wait` returning false.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::smoke {

using steady = std::chrono::steady_clock;

template <class Answer>
class awaited {
 public:
  /// For one asynchronous call.
  auto handler() {
    return boost::asio::bind_cancellation_slot(shared_->signal.slot(), [shared = shared_](Answer answer) {
      const std::scoped_lock lock(shared->mutex);
      shared->answer.emplace(std::move(answer));
      shared->came = steady::now();
      shared->changed.notify_all();
    });
  }
  /// Gives up the notification. Only while no answer can come.
  void cancel() { shared_->signal.emit(boost::asio::cancellation_type::terminal); }

  bool wait_until(steady::time_point bound) {
    std::unique_lock lock(shared_->mutex);
    return shared_->changed.wait_until(lock, bound, [this] { return shared_->answer.has_value(); });
  }
  bool wait(steady::duration bound) { return wait_until(steady::now() + bound); }
  bool came() { return wait(steady::duration::zero()); }
  /// After `wait` answered true.
  Answer& answer() { return *shared_->answer; }
  steady::time_point when() { return shared_->came; }

 private:
  struct state {
    boost::asio::cancellation_signal signal;
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Answer> answer;
    steady::time_point came{};
  };
  std::shared_ptr<state> shared_ = std::make_shared<state>();
};

}  // namespace holdfast::smoke
