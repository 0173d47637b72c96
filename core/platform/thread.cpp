#include <holdfast/platform/abi.hpp>

#include <holdfast/platform/thread.hpp>

#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::platform {

namespace {

// A handler of the embedder must not run on a thread that he does not know of. Signals that the running
// instruction itself raises stay open: blocked, they end the process without a word.
class asynchronous_signals_blocked {
 public:
  asynchronous_signals_blocked() noexcept {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int synchronous : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
      sigdelset(&blocked, synchronous);
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~asynchronous_signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  asynchronous_signals_blocked(const asynchronous_signals_blocked&) = delete;
  asynchronous_signals_blocked& operator=(const asynchronous_signals_blocked&) = delete;

 private:
  sigset_t before_;
};

constexpr std::size_t name_bytes_max = 16;  // of the kernel, the terminator included

}  // namespace

std::expected<thread, int> thread::start(std::string_view name, std::move_only_function<void()> body) {
  std::array<char, name_bytes_max> shown{};
  name.copy(shown.data(), name_bytes_max - 1);
  thread started;
  try {
    // The new thread inherits the mask, so there is no moment at which a signal could reach it.
    const asynchronous_signals_blocked scope;
    started.native_ = std::thread([shown, body = std::move(body)]() mutable {
      pthread_setname_np(pthread_self(), shown.data());
      // What the body owns ends here: after join() returned nothing of it is left.
      auto local = std::move(body);
      local();
    });
  } catch (const std::system_error& refused) {
    const int code = refused.code().value();
    return std::unexpected(code != 0 ? code : EAGAIN);
  } catch (const std::bad_alloc&) {
    return std::unexpected(ENOMEM);
  }
  return started;
}

std::uint64_t this_thread_number() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  static constinit thread_local std::uint64_t mine = 0;
  if (mine == 0) mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return mine;
}

}  // namespace holdfast::inline HOLDFAST_ABI::platform
