// The probes against the installed UCX, over the loopback device and the memory of this machine.
//
//   driver_conformance_real            runs all, prints one JSON line for each probe and transport
//   driver_conformance_real NAME       those whose name begins with NAME
//
// Each probe runs in processes of its own, started by exec before UCX is loaded: a probe may kill or stop its owner,
// and what crashes or hangs is an answer. Several run at once, since most of them wait.
#include "../probe.hpp"

#include <holdfast/backends/ucx/load.hpp>
#include <holdfast/platform/clock.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

extern char** environ;

namespace holdfast::driver_probe {

namespace {

constexpr unsigned at_once = 4;
constexpr std::int64_t patience_ns = 30 * second;

std::int64_t clock_ns() { return platform::clock{}.now().time_since_epoch().count(); }

const ucx::ucp_table& table() {
  static const platform::clock clock;
  static event_log log(clock);
  static const result<ucx::ucp_table> loaded = ucx::load_ucp(log);
  if (!loaded) {
    std::fprintf(stderr, "%s\n", loaded.error().text().c_str());
    std::exit(3);
  }
  return *loaded;
}

pid_t start(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  return posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv.data(), environ) == 0 ? child : -1;
}

class real_bench final : public bench {
 public:
  real_bench(board& between, bool memory, pid_t owner) : bench(table(), between, memory), owner_(owner) {}
  std::int64_t now_ns() override { return clock_ns(); }
  void sleep_ns(std::int64_t duration_ns) override {
    usleep(static_cast<useconds_t>(std::max<std::int64_t>(1, duration_ns / 1000)));
  }
  bool wait_readable(int descriptor, std::int64_t within_ns) override {
    pollfd one{descriptor, POLLIN, 0};
    return poll(&one, 1, static_cast<int>(within_ns / ms)) == 1;
  }
  std::byte* pages(std::size_t bytes) override {
    void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(base != MAP_FAILED, "no pages");
    return static_cast<std::byte*>(base);
  }
  void give_back(std::byte* base, std::size_t bytes) override { munmap(base, bytes); }
  std::uint32_t owner_address() override { return 0x7f000001; }
  std::uint32_t probe_address() override { return 0x7f000001; }
  void strike(blow how) override {
    kill(owner_, how == blow::kill ? SIGKILL : how == blow::stop ? SIGSTOP : SIGCONT);
    int status = 0;
    if (how == blow::kill) waitpid(owner_, &status, 0);
    if (how == blow::stop) waitpid(owner_, &status, WUNTRACED);
  }

 private:
  pid_t owner_;
};

board& map_board(int descriptor) {
  void* const at = mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) std::exit(3);
  return *static_cast<board*>(at);
}

const probe* find(std::string_view name) {
  for (const probe* const p : all_probes())
    if (name == p->name) return p;
  return nullptr;
}

int owner_main(const std::string& descriptor, bool memory) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  real_bench b(map_board(std::stoi(descriptor)), memory, 0);
  try {
    run_owner(b);
  } catch (const failure& f) {
    std::fprintf(stderr, "owner: %s\n", f.sentence);
    return 2;
  }
  return 0;
}

int probe_main(const std::string& descriptor, const probe& p, bool memory) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const pid_t owner = start({"driver_conformance_real", "--owner", descriptor, memory ? "memory" : "tcp"});
  real_bench b(map_board(std::stoi(descriptor)), memory, owner);
  run_probe(p, b);
  kill(owner, SIGKILL);
  kill(owner, SIGCONT);
  return 0;
}

struct running {
  const probe* what = nullptr;
  bool memory = false;
  pid_t child = -1;
  int descriptor = -1;
  board* between = nullptr;
  std::int64_t started_ns = 0;
  std::string answered;
};

running begin(const probe& p, bool memory) {
  running r{&p, memory, -1, -1, nullptr, clock_ns(), {}};
  r.descriptor = memfd_create("board", 0);
  if (r.descriptor < 0 || ftruncate(r.descriptor, sizeof(board)) != 0) std::exit(3);
  r.between = new (&map_board(r.descriptor)) board;
  r.child =
      start({"driver_conformance_real", "--probe", std::to_string(r.descriptor), p.name, memory ? "memory" : "tcp"});
  return r;
}

/// True: it is over.
bool look(running& r) {
  int status = 0;
  const pid_t ended = waitpid(r.child, &status, WNOHANG);
  if (ended == 0) {
    if (clock_ns() - r.started_ns < patience_ns) return false;
    kill(r.child, SIGKILL);
    waitpid(r.child, &status, 0);
    r.answered = "did not end within 30 s";
  } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) {
    r.answered = "the library aborts the process";
  } else if (WIFSIGNALED(status)) {
    r.answered = std::string("ended by signal ") + strsignal(WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    r.answered = "ended with status " + std::to_string(WEXITSTATUS(status));
  } else {
    r.answered = r.between->answer;
    if (r.answered.empty()) r.answered = "no answer";
  }
  munmap(r.between, sizeof(board));
  close(r.descriptor);
  return true;
}

int all_main(std::string_view beginning) {
  std::vector<running> all;
  for (const probe* const p : all_probes()) {
    if (!std::string_view(p->name).starts_with(beginning)) continue;
    if ((p->where & over_tcp) != 0) all.push_back({p, false, -1, -1, nullptr, 0, {}});
    if ((p->where & through_memory) != 0) all.push_back({p, true, -1, -1, nullptr, 0, {}});
  }
  std::size_t next = 0;
  std::vector<std::size_t> active;
  while (next < all.size() || !active.empty()) {
    while (active.size() < at_once && next < all.size()) {
      all[next] = begin(*all[next].what, all[next].memory);
      active.push_back(next++);
    }
    std::erase_if(active, [&all](std::size_t i) { return look(all[i]); });
    usleep(1000);
  }
  for (const running& r : all) {
    std::printf("{\"probe\": \"%s\", \"fact\": \"%s\", \"transport\": \"%s\", \"answers\": [\"%s\"]}\n", r.what->name,
                r.what->fact, r.memory ? "shared memory" : "tcp", r.answered.c_str());
  }
  return 0;
}

}  // namespace

}  // namespace holdfast::driver_probe

int main(int count, char** values) {
  using namespace holdfast::driver_probe;
  const std::vector<std::string> arguments(values + 1, values + count);
  if (arguments.size() == 3 && arguments[0] == "--owner") return owner_main(arguments[1], arguments[2] == "memory");
  if (arguments.size() == 4 && arguments[0] == "--probe") {
    const probe* const p = find(arguments[2]);
    return p == nullptr ? 2 : probe_main(arguments[1], *p, arguments[3] == "memory");
  }
  return all_main(arguments.empty() ? "" : arguments[0]);
}
