// The suite's harness with real threads: a body runs on the thread of the test, and one that should stop the process
// runs in a child, whose last words come back through a pipe.
#include <tests/conformance/platform/harness.hpp>

#include <gtest/gtest.h>

#include <sys/eventfd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace holdfast::conformance {

namespace {

std::mutex failures_mutex;
std::vector<std::string> failures;

// Reports what bodies recorded. gtest's macros would do from any thread here; the other side cannot, and the text of
// the suite is one.
void report() {
  for (const auto& failure : std::exchange(failures, {})) ADD_FAILURE() << failure;
}

class event_descriptor final : public watched_descriptor {
 public:
  event_descriptor() : number_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) { expect(number_ >= 0, "an eventfd exists"); }
  ~event_descriptor() override { ::close(number_); }
  int number() const noexcept override { return number_; }
  void make_readable() override { expect(::eventfd_write(number_, 1) == 0, "the eventfd takes a write"); }
  void make_unreadable() override {
    eventfd_t count = 0;
    expect(::eventfd_read(number_, &count) == 0, "the eventfd was readable");
  }

 private:
  int number_;
};

}  // namespace

void expect(bool held, std::string_view sentence, std::source_location where) {
  if (held) return;
  std::string text = std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": not so: ";
  text += sentence;
  const std::scoped_lock lock(failures_mutex);
  failures.push_back(std::move(text));
}

void keep_time_calm() {}

void run_on_side(std::move_only_function<void(platform::host&)> body, unsigned executor_threads) {
  {
    platform::host host(executor_threads);
    body(host);
  }
  report();
}

stop_seen stop_on_side(std::move_only_function<void(platform::host&)> body) {
  int ends[2];
  if (::pipe(ends) != 0) return {.stopped = false, .said = "no pipe"};
  std::fflush(nullptr);  // or the child would say again what is still in the buffers
  const pid_t child = ::fork();
  if (child < 0) return {.stopped = false, .said = "no child"};
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    {
      platform::host host(1);
      body(host);
    }
    for (const auto& failure : failures) {
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, failure.data(), failure.size());
    }
    ::_exit(EXIT_SUCCESS);
  }
  ::close(ends[1]);
  stop_seen seen;
  char text[512];
  for (ssize_t bytes; (bytes = ::read(ends[0], text, sizeof text)) > 0;)
    seen.said.append(text, static_cast<std::size_t>(bytes));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  seen.stopped = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  return seen;
}

unsigned effort(unsigned real, unsigned /*simulated*/) noexcept { return real; }

std::unique_ptr<watched_descriptor> make_descriptor(platform::host&) { return std::make_unique<event_descriptor>(); }

}  // namespace holdfast::conformance
