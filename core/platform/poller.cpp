#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/poller.hpp>

#include <holdfast/platform/thread.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::platform {

std::expected<poller, int> poller::create(host&) noexcept {
  poller made;
  made.event_descriptor_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (made.event_descriptor_ < 0) return std::unexpected(errno);
  if (!made.add(made.event_descriptor_)) return std::unexpected(ENOMEM);
  return made;
}

poller::poller(poller&& other) noexcept
    : event_descriptor_(std::exchange(other.event_descriptor_, -1)),
      announced_(other.announced_.load(std::memory_order_relaxed)),
      seen_(other.seen_),
      watched_(std::move(other.watched_)) {}

poller& poller::operator=(poller&& other) noexcept {
  std::swap(event_descriptor_, other.event_descriptor_);
  announced_.store(other.announced_.exchange(announced_.load(std::memory_order_relaxed)));
  std::swap(seen_, other.seen_);
  std::swap(watched_, other.watched_);
  return *this;
}

poller::~poller() {
  if (event_descriptor_ >= 0) ::close(event_descriptor_);
}

bool poller::add(int descriptor) noexcept {
  try {
    watched_.push_back(pollfd{.fd = descriptor, .events = POLLIN, .revents = 0});
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

wake_cause poller::wait(time_point deadline) noexcept {
  constexpr std::int64_t second_ns = 1'000'000'000;
  const clock time;
  for (;;) {
    timespec left{};
    const timespec* timeout = nullptr;  // for ever
    if (deadline != never) {
      // Compared before it is subtracted: a deadline of the distant past would overflow.
      const time_point now = time.now();
      const std::int64_t left_ns = deadline > now ? (deadline - now).count() : 0;
      left.tv_sec = left_ns / second_ns;
      left.tv_nsec = left_ns % second_ns;
      timeout = &left;
    }
    const int ready = ::ppoll(watched_.data(), watched_.size(), timeout, nullptr);
    if (ready < 0) {
      if (errno == EINTR) continue;
      // The system has no memory for the call. Returning lets the caller make progress of its own; without the
      // yield its loop would keep the processor from whoever could free some.
      yield();
      return wake_cause::none;
    }
    if (ready > 0) {
      seen_ = watched_.front().revents != 0;
      auto cause = seen_ ? wake_cause::woken : wake_cause::none;
      for (std::size_t i = 1; i < watched_.size(); ++i)
        if (watched_[i].revents != 0) cause = cause | wake_cause::descriptor;
      return cause;
    }
    if (time.now() >= deadline) return wake_cause::deadline;
  }
}

void poller::wake() noexcept {
  // Fails only if 2^64-2 wakes are pending: then one more changes nothing.
  const std::uint64_t one = 1;
  announced_.store(true, std::memory_order_release);
  while (::write(event_descriptor_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void poller::drain_wakes() noexcept {
  // A waker who announced and did not write yet is left to the wait that sees what he writes.
  const bool announced = announced_.exchange(false, std::memory_order_acq_rel);
  if (!std::exchange(seen_, false) && !announced) return;
  // One read takes the whole count; it fails if there was none.
  std::uint64_t count = 0;
  while (::read(event_descriptor_, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
