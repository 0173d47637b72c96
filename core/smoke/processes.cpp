#include <holdfast/platform/abi.hpp>

#include "smoke/processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

extern char** environ;

namespace holdfast::smoke {

namespace {

constexpr std::chrono::milliseconds start_bound{120'000};

sigset_t ending_signals() noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, number);
  return set;
}

void close_if_open(int& descriptor) noexcept {
  if (descriptor >= 0) ::close(std::exchange(descriptor, -1));
}

void reap_now(pid_t pid) noexcept {
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string failed_call(const char* call, int number) { return std::string(call) + ": " + std::strerror(number); }

}  // namespace

// ---- Everybody ------------------------------------------------------------------------------------------------------

void process_group::kill_all() noexcept {
  const std::scoped_lock lock(mutex_);
  over_ = true;
  for (const pid_t pid : std::exchange(children_, {})) reap_now(pid);
  if (!unfinished_file_.empty()) ::unlink(unfinished_file_.c_str());
}

void process_group::set_unfinished_file(std::string path) {
  const std::scoped_lock lock(mutex_);
  unfinished_file_ = std::move(path);
}

interruptions::interruptions(process_group& children) {
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC);
  end_ = ::eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this, &children] { watch(children); });
}

interruptions::~interruptions() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(end_, &one, sizeof one);
  thread_.join();
  close_if_open(signals_);
  close_if_open(end_);
}

void interruptions::watch(process_group& children) noexcept {
  pollfd what[] = {{signals_, POLLIN, 0}, {end_, POLLIN, 0}};
  while (::poll(what, 2, -1) < 0 && errno == EINTR) {
  }
  signalfd_siginfo came{};
  if (what[0].revents == 0 || ::read(signals_, &came, sizeof came) != sizeof came) return;
  children.kill_all();
  static constexpr char words[] = "holdfast-smoke: interrupted; its peers are gone, nothing is left behind\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, words, sizeof words - 1);
  // Whoever waits for this process learns which signal ended it.
  const int number = static_cast<int>(came.ssi_signo);
  ::signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(number);
  ::_exit(1);
}

void open_standard_descriptors() noexcept {
  int opened = ::open("/dev/null", O_RDWR);
  while (opened >= 0 && opened <= STDERR_FILENO) opened = ::open("/dev/null", O_RDWR);
  if (opened > STDERR_FILENO) ::close(opened);
}

void end_with_parent(pid_t parent) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have died before that was asked for.
  if (::getppid() != parent) ::_exit(1);
  // A terminal sends Ctrl-C to everybody; the parent decides what ends.
  for (const int number : {SIGINT, SIGHUP, SIGQUIT}) ::signal(number, SIG_IGN);
}

// ---- One peer -------------------------------------------------------------------------------------------------------

std::expected<std::unique_ptr<peer_process>, std::string> peer_process::start(process_group& group, std::uint64_t bytes,
                                                                              std::uint64_t seed,
                                                                              const std::string& ucx_library) {
  std::unique_ptr<peer_process> made(new peer_process(group, seed));
  if (std::string wrong = made->begin(bytes, ucx_library); !wrong.empty()) return std::unexpected(std::move(wrong));
  if (std::string wrong = made->read_offer(start_bound); !wrong.empty()) return std::unexpected(std::move(wrong));
  return made;
}

std::string peer_process::begin(std::uint64_t bytes, const std::string& ucx_library) {
  int down[2] = {-1, -1};
  int up[2] = {-1, -1};
  if (::pipe2(down, O_CLOEXEC) != 0) return failed_call("pipe2", errno);
  to_child_ = down[1];
  if (::pipe2(up, O_CLOEXEC) != 0) {
    const int number = errno;
    ::close(down[0]);
    return failed_call("pipe2", number);
  }
  from_child_ = up[0];

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, up[1], offer_descriptor);
  posix_spawn_file_actions_adddup2(&actions, down[0], STDIN_FILENO);
  // What a library prints belongs to people, not to the table.
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);

  std::vector<std::string> words{"holdfast-smoke",      "--serve",  std::to_string(seed_),     "--bytes",
                                 std::to_string(bytes), "--parent", std::to_string(::getpid())};
  if (!ucx_library.empty()) words.insert(words.end(), {"--ucx-library", ucx_library});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int failed = ECANCELED;
  {
    const std::scoped_lock lock(group_.mutex_);
    if (!group_.over_) {
      group_.children_.reserve(group_.children_.size() + 1);
      failed = ::posix_spawn(&pid_, "/proc/self/exe", &actions, &attributes, arguments.data(), environ);
      if (failed == 0)
        group_.children_.push_back(pid_);
      else
        pid_ = -1;
    }
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(down[0]);
  ::close(up[1]);
  return failed == 0 ? std::string() : failed_call("posix_spawn", failed);
}

std::string peer_process::read_offer(std::chrono::milliseconds bound) {
  const auto deadline = std::chrono::steady_clock::now() + bound;
  std::string line;
  while (line.find('\n') == line.npos) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return "a peer did not serve within " + std::to_string(bound.count() / 1000) + " s";
    pollfd what{from_child_, POLLIN, 0};
    if (::poll(&what, 1, static_cast<int>(left.count())) <= 0) continue;
    char some[1024];
    const ssize_t got = ::read(from_child_, some, sizeof some);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return "a peer ended before it served";
    line.append(some, static_cast<std::size_t>(got));
  }
  line.resize(line.find('\n'));
  if (auto made = parse_offer(line)) {
    offer_ = std::move(*made);
    return {};
  }
  // Then it says why it cannot.
  return "a peer cannot serve: " + line;
}

peer_process::~peer_process() {
  if (pid_ > 0) {
    kill();
    reap();
  }
  close_if_open(to_child_);
  close_if_open(from_child_);
}

bool peer_process::stop() noexcept {
  if (pid_ <= 0) return false;
  ::kill(pid_, SIGSTOP);
  // Left waitable: an end is reaped in one place only.
  siginfo_t how{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &how, WSTOPPED | WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  return how.si_code == CLD_STOPPED;
}

void peer_process::resume() noexcept {
  if (pid_ > 0) ::kill(pid_, SIGCONT);
}

void peer_process::kill() noexcept {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

std::optional<int> peer_process::finish(std::chrono::milliseconds bound) noexcept {
  if (pid_ <= 0) return std::nullopt;
  close_if_open(to_child_);
  // The pipe ends when the process does.
  const auto deadline = std::chrono::steady_clock::now() + bound;
  for (bool open = true; open;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      kill();
      break;
    }
    pollfd what{from_child_, POLLIN, 0};
    if (::poll(&what, 1, static_cast<int>(left.count())) <= 0) continue;
    char some[256];
    open = ::read(from_child_, some, sizeof some) > 0;
  }
  return reap();
}

std::optional<int> peer_process::reap() noexcept {
  siginfo_t how{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  int status = 0;
  const std::scoped_lock lock(group_.mutex_);
  // Whoever is interrupted right now kills what is in the list: number and process leave it together.
  const auto found = std::ranges::find(group_.children_, pid_);
  const bool ours = found != group_.children_.end();
  if (ours) {
    ::waitpid(pid_, &status, 0);
    group_.children_.erase(found);
  }
  pid_ = -1;
  if (!ours || !WIFEXITED(status)) return std::nullopt;
  return WEXITSTATUS(status);
}

}  // namespace holdfast::smoke
