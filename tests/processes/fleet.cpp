#include <holdfast/platform/abi.hpp>

#include <tests/processes/fleet.hpp>
#include <tests/processes/node.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <utility>

extern char** environ;

namespace holdfast::testing::processes {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// What UCX 1.13.1 does to a process that did nothing wrong.
struct defect {
  const char* name;
  const char* words;
  bool only_tcp;
};
constexpr defect defects[] = {
    // It serves, and a reader's connection breaks at a moment that turns do not cover (decision 53).
    {"fallen_serving", "unexpected error: Endpoint timeout", true},
    // A worker of lanes through memory is destroyed while its answer to a peer that connected waits for room in that peer's
    // queue, which is full because the peer died or stands still.
    {"fallen_parting", "got REP message", false},
    // It destroys a tcp endpoint of its own that still has a request waiting (docs/life-of-a-connection.md).
    {"fallen_failing", "stubs.c:102  Assertion `0' failed", false},
};

void close_if_open(int& descriptor) noexcept {
  if (descriptor >= 0) ::close(std::exchange(descriptor, -1));
}

bool is_free(std::uint16_t port) {
  const int tried = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_ANY);
  const bool free = ::bind(tried, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  ::close(tried);
  return free;
}

// Below those that systems draw from, so that nobody takes it between two lives.
std::uint16_t free_port() {
  static std::uint32_t next = static_cast<std::uint32_t>(::getpid()) * 37;
  for (int tries = 0; tries < 2000; ++tries) {
    const auto port = static_cast<std::uint16_t>(20'000 + next++ % 10'000);
    if (is_free(port)) return port;
  }
  return 0;
}

}  // namespace

milliseconds usual_bound() noexcept {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return 30s;
#else
  return 10s;
#endif
}

std::map<std::string, std::uint64_t> numbers_of(std::string_view text) {
  std::map<std::string, std::uint64_t> out;
  std::istringstream in{std::string(text)};
  for (std::string word; in >> word;)
    if (const auto at = word.find('='); at != word.npos) out[word.substr(0, at)] = std::stoull(word.substr(at + 1));
  return out;
}

fleet::fleet(const shape& how) : how_(how), members_(how.nodes), last_seed_(how.seed * 1'000'003) {
  for (member& one : members_) one.port = how_.links != nullptr ? 20'000 : free_port();
}

fleet::~fleet() {
  for (unsigned i = 0; i < size(); ++i)
    if (members_[i].now != condition::absent) {
      ::kill(members_[i].pid, SIGKILL);
      gone(i, true);
    }
}

std::string fleet::place(unsigned node) const {
  return "node " + std::to_string(node) + ", life " + std::to_string(members_[node].life);
}

void fleet::fail(std::string sentence) { failures_.push_back(std::move(sentence)); }

std::string fleet::log_of(const member& one) const {
  std::string text;
  char some[4096];
  for (off_t at = 0;; at += static_cast<off_t>(sizeof some)) {
    const ssize_t got = ::pread(one.log, some, sizeof some, at);
    if (got <= 0) break;
    text.append(some, static_cast<std::size_t>(got));
  }
  return text;
}

bool fleet::spawn(unsigned node) {
  member& one = members_[node];
  int down[2], up[2];
  if (::pipe2(down, O_CLOEXEC) != 0 || ::pipe2(up, O_CLOEXEC) != 0) return false;
  one.to = down[1];
  one.from = up[0];
  ::fcntl(one.to, F_SETFL, O_NONBLOCK);
  one.log = ::memfd_create("holdfast-node", MFD_CLOEXEC);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, down[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, one.log, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, one.log, STDERR_FILENO);
  // The last, since one of the others may have that number here.
  posix_spawn_file_actions_adddup2(&actions, up[1], answers_descriptor);
  const std::string host = how_.links != nullptr ? how_.links->address(node) : std::string("127.0.0.1");
  std::vector<std::string> words;
  if (how_.links != nullptr) words = how_.links->inside(node);
  char self[4096] = {};
  if (::readlink("/proc/self/exe", self, sizeof self - 1) <= 0) return false;
  const std::string first = words.empty() ? self : words.front();
  words.push_back(self);
  for (std::string word : {std::string("--node"), "worker=" + std::to_string(node + 1),
                           "listen=" + host + ':' + std::to_string(one.port), "memory=" + std::to_string(how_.memory),
                           "seed=" + std::to_string(one.seed), "bytes=" + std::to_string(how_.bytes),
                           "bound_ms=" + std::to_string(how_.bound.count()), "parent=" + std::to_string(::getpid())})
    words.push_back(std::move(word));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int failed = ::posix_spawnp(&one.pid, first.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(down[0]);
  ::close(up[1]);
  if (failed != 0) one.pid = -1;
  return failed == 0;
}

bool fleet::start(unsigned node) {
  member& one = members_[node];
  if (one.now != condition::absent) return false;
  ++one.life;
  one.seed = ++last_seed_;
  one.input.clear();
  one.lines.clear();
  one.last.clear();
  one.ended.reset();
  if (!spawn(node)) {
    fail(place(node) + " could not be started");
    return false;
  }
  one.now = condition::running;
  const auto said = answer(node, "offer", 60s + how_.bound);
  if (!said) {
    if (members_[node].now != condition::absent) {
      fail(place(node) + " did not serve");
      kill(node);
    }
    return false;
  }
  // The seed, then the offer.
  auto offered = smoke::parse_offer("offer " + said->substr(said->find(' ') + 1));
  if (!offered) {
    fail(place(node) + " offers what is none: " + *said);
    return false;
  }
  one.offered = std::move(*offered);
  for (unsigned i = 0; i < size(); ++i) {
    if (i == node || members_[i].now == condition::absent) continue;
    const auto line = [this](unsigned of) {
      std::string text = smoke::to_line(members_[of].offered);
      text.pop_back();
      return "peer " + std::to_string(of) + ' ' + std::to_string(members_[of].seed) + ' ' + text;
    };
    if (members_[i].now != condition::ending) tell(node, line(i));
    tell(i, line(node));
  }
  return true;
}

void fleet::start_all() {
  for (unsigned i = 0; i < size(); ++i) start(i);
}

void fleet::tell(unsigned node, const std::string& line) {
  member& one = members_[node];
  if (one.to < 0) return;
  const std::string whole = line + '\n';
  // A process that stands still reads nothing; the pipe has room for all that a run says to it.
  const ssize_t written = ::write(one.to, whole.data(), whole.size());
  if (written >= 0 && static_cast<std::size_t>(written) != whole.size()) fail(place(node) + " does not read");
}

void fleet::tell_all(const std::string& line) {
  for (unsigned i = 0; i < size(); ++i)
    if (members_[i].now == condition::running || members_[i].now == condition::stopped) tell(i, line);
}

void fleet::kill(unsigned node) {
  member& one = members_[node];
  if (one.now == condition::absent) return;
  ::kill(one.pid, SIGKILL);
  gone(node, true);
}

void fleet::stop(unsigned node) {
  member& one = members_[node];
  if (one.now != condition::running) return;
  ::kill(one.pid, SIGSTOP);
  // A stop takes effect when the process says so, not when it was asked.
  siginfo_t how{};
  while (::waitid(P_PID, static_cast<id_t>(one.pid), &how, WSTOPPED | WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  if (how.si_code == CLD_STOPPED) {
    int status = 0;
    ::waitpid(one.pid, &status, WUNTRACED);
    one.now = condition::stopped;
  }
}

void fleet::resume(unsigned node) {
  member& one = members_[node];
  if (one.now != condition::stopped) return;
  ::kill(one.pid, SIGCONT);
  one.now = condition::running;
}

void fleet::ask_to_end(unsigned node, bool quietly) {
  member& one = members_[node];
  if (one.now != condition::running) return;
  tell(node, quietly ? "end quiet" : "end now");
  one.now = condition::ending;
  // Three seconds of its deadline, and what giving back, answers and a checker of leaks may take.
  one.end_by = steady::now() + 3s + 5 * how_.bound;
  note_loss();
}

// The process ended, or is about to by our own signal.
void fleet::gone(unsigned node, bool expected) {
  member& one = members_[node];
  int status = 0;
  while (::waitpid(one.pid, &status, 0) < 0 && errno == EINTR) {
  }
  // What it said last is still in the pipe.
  char some[4096];
  for (ssize_t got = 0; (got = ::read(one.from, some, sizeof some)) > 0;)
    one.input.append(some, static_cast<std::size_t>(got));
  const bool was_ending = one.now == condition::ending;
  one.now = condition::absent;
  hear(node);
  const std::string log = log_of(one);
  const defect* by_library = nullptr;
  const bool died = WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
  for (const defect& one_of : defects)
    if (!expected && died && losses_ > 0 && !(one_of.only_tcp && how_.memory) && log.find(one_of.words) != log.npos)
      by_library = &one_of;
  if (by_library != nullptr) {
    ++fallen_[by_library->name];
    const std::size_t from = log.find(by_library->words);
    std::printf("%s, by a defect of the library (%s):\n%s\n", place(node).c_str(), by_library->name,
                log.substr(from - std::min<std::size_t>(from, 500), 2'500).c_str());
  } else if (!expected && (!was_ending || !WIFEXITED(status) || WEXITSTATUS(status) != 0 || !one.ended)) {
    const std::string how = WIFSIGNALED(status) ? "by signal " + std::to_string(WTERMSIG(status))
                                                : "with status " + std::to_string(WEXITSTATUS(status));
    fail(place(node) + " ended " + how + (was_ending ? "" : ", which nobody asked for") + "; it said:\n" +
         log.substr(log.size() - std::min<std::size_t>(log.size(), 20'000)));
  }
  // Also of a life that was killed after it.
  for (const char* const finding :
       {"WARNING: ThreadSanitizer", "ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error: "})
    if (by_library == nullptr && log.find(finding) != log.npos) {
      fail(place(node) + ": a sanitizer found something:\n" + log.substr(log.find(finding), 20'000));
      break;
    }
  note_loss();
  for (const auto& [name, value] : one.last) sums_[name] += value;
  close_if_open(one.to);
  close_if_open(one.from);
  close_if_open(one.log);
  one.pid = -1;
  for (unsigned i = 0; i < size(); ++i)
    if (i != node && members_[i].now != condition::absent) tell(i, "dead " + std::to_string(node));
}

// Cuts what it said into lines.
void fleet::hear(unsigned node) {
  member& one = members_[node];
  for (std::size_t end = one.input.find('\n'); end != one.input.npos; end = one.input.find('\n')) {
    std::string line = one.input.substr(0, end);
    one.input.erase(0, end + 1);
    if (line.starts_with("wrong ")) {
      fail(place(node) + ": " + line.substr(6));
      continue;
    }
    if (line.starts_with("state ") || line.starts_with("ended ")) one.last = numbers_of(line);
    if (line.starts_with("ended ")) one.ended = line.substr(6);
    one.lines.push_back(std::move(line));
  }
}

void fleet::listen(milliseconds how_long) {
  const auto until = steady::now() + how_long;
  for (;;) {
    std::vector<pollfd> what;
    std::vector<unsigned> who;
    for (unsigned i = 0; i < size(); ++i)
      if (members_[i].now != condition::absent) {
        what.push_back({members_[i].from, POLLIN, 0});
        who.push_back(i);
      }
    const auto left = std::chrono::duration_cast<milliseconds>(until - steady::now());
    const int came = ::poll(what.data(), what.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    for (std::size_t i = 0; came > 0 && i < what.size(); ++i) {
      if (what[i].revents == 0) continue;
      char some[4096];
      const ssize_t got = ::read(what[i].fd, some, sizeof some);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        gone(who[i], false);
        continue;
      }
      members_[who[i]].input.append(some, static_cast<std::size_t>(got));
      hear(who[i]);
    }
    for (unsigned i = 0; i < size(); ++i)
      if (members_[i].now == condition::ending && steady::now() > members_[i].end_by) {
        fail(place(i) + " did not end; it said:\n" + log_of(members_[i]));
        kill(i);
      }
    if (came > 0 || steady::now() >= until) return;
  }
}

std::optional<std::string> fleet::answer(unsigned node, std::string_view word, milliseconds bound) {
  const auto until = steady::now() + bound;
  const unsigned life = members_[node].life;
  for (;;) {
    auto& lines = members_[node].lines;
    for (auto at = lines.begin(); at != lines.end(); ++at) {
      if (!at->starts_with(word)) continue;
      std::string rest = at->size() > word.size() ? at->substr(word.size() + 1) : std::string();
      lines.erase(at);
      return rest;
    }
    if (members_[node].now == condition::absent || members_[node].life != life || steady::now() > until)
      return std::nullopt;
    listen(20ms);
  }
}

std::optional<std::string> fleet::wait_for_end(unsigned node) {
  while (members_[node].now == condition::ending) listen(50ms);
  return members_[node].ended;
}

std::map<std::string, std::uint64_t> fleet::numbers(unsigned node) {
  // Answers that nobody waited for may lie here still: what they say is of then.
  const std::uint64_t asked = ++asked_;
  tell(node, "state " + std::to_string(asked));
  const auto until = steady::now() + how_.bound;
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - steady::now());
    const auto said = answer(node, "state", left);
    if (!said) return {};
    auto seen = numbers_of(*said);
    if (seen["asked"] == asked) return seen;
  }
}

bool fleet::wait_for(unsigned node, const std::string& name, std::uint64_t value, milliseconds bound) {
  const auto until = steady::now() + bound;
  for (;;) {
    const auto seen = numbers(node);
    if (const auto found = seen.find(name); found != seen.end() && found->second == value) return true;
    if (steady::now() > until || members_[node].now == condition::absent) return false;
  }
}

}  // namespace holdfast::testing::processes
