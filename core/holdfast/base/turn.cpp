#include <holdfast/platform/abi.hpp>

#include <holdfast/base/turn.hpp>

#include <holdfast/base/lock.hpp>
#include <holdfast/base/lock_ranks.hpp>
#include <holdfast/platform/stop_process.hpp>

namespace holdfast::inline HOLDFAST_ABI {

turn::turn() noexcept : mutex_(lock_ranks::base_turn) {}

turn::~turn() {
  if (taken_) platform::stop_process("a turn was destroyed while somebody has it");
}

turn::holder turn::try_take() noexcept {
  scoped_lock lock(mutex_);
  if (taken_) return holder();
  taken_ = true;
  return holder(*this);
}

bool turn::taken() const noexcept {
  scoped_lock lock(mutex_);
  return taken_;
}

std::size_t turn::waiting() const noexcept {
  scoped_lock lock(mutex_);
  return queue_.size();
}

void turn::pass_on() noexcept {
  told_waiters told;
  {
    scoped_lock lock(mutex_);
    bool passed = false;
    while (!passed) {
      waiter* const next = queue_.pop_front();
      if (next == nullptr) break;
      passed = told.add(*next);
      if (passed) static_cast<take_awaiter*>(next)->handed_over_ = true;
    }
    taken_ = passed;
  }
  told.tell();
}

waiter::attached turn::take_awaiter::attach() noexcept {
  scoped_lock lock(turn_.mutex_);
  if (turn_.taken_) {
    turn_.queue_.push_back(*this);
    return attached::linked;
  }
  turn_.taken_ = true;
  handed_over_ = true;
  return attached::ready;
}

bool turn::take_awaiter::detach() noexcept {
  scoped_lock lock(turn_.mutex_);
  if (!linked()) return false;
  turn_.queue_.erase(*this);
  return true;
}

std::expected<turn::holder, wait_end> turn::take_awaiter::await_resume() noexcept {
  if (end() != wait_end::signaled) return std::unexpected(end());
  handed_over_ = false;
  return holder(turn_);
}

// The task was dropped between the hand-over and its resumption.
turn::take_awaiter::~take_awaiter() {
  if (handed_over_) turn_.pass_on();
}

}  // namespace holdfast::inline HOLDFAST_ABI
