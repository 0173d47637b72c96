#include <sim/campaign/child.hpp>

#include <sim/campaign/signals.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace holdfast::sim {

namespace {

void write_all(int descriptor, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(descriptor, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace

pid_t fork_child(const std::function<void()>& work) {
  // What is buffered must not be written twice.
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  // Both may be sent to the whole group; the parent says what is to be done.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  work();
  std::fflush(nullptr);
  _exit(0);
}

std::string death_of(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(WTERMSIG(status));
  }
  const int code = WEXITSTATUS(status);
  return code == 0 ? "" : "exit " + std::to_string(code);
}

child_answer in_child(const std::function<std::string()>& work, unsigned limit_seconds) {
  int ends[2];
  if (pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  const pid_t pid = fork_child([&] {
    close(ends[0]);
    write_all(ends[1], work());
  });
  close(ends[1]);
  child_answer out;
  const auto begin = std::chrono::steady_clock::now();
  bool killed = false;
  for (;;) {
    pollfd waiting{ends[0], POLLIN, 0};
    poll(&waiting, 1, 100);
    const bool late =
        limit_seconds != 0 && std::chrono::steady_clock::now() - begin > std::chrono::seconds(limit_seconds);
    if (!killed && (late || stop_requested())) {
      kill(pid, late ? SIGABRT : SIGKILL);
      killed = true;
    }
    if (waiting.revents == 0) continue;
    char part[65536];
    const ssize_t n = read(ends[0], part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    out.text.append(part, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  out.death = death_of(status);
  if (!out.death.empty()) out.text.clear();
  return out;
}

}  // namespace holdfast::sim
