#include <holdfast/platform/abi.hpp>

#include <tests/processes/node.hpp>
#include <tests/processes/traffic.hpp>

#include <holdfast/platform/host.hpp>
#include <holdfast/runtime/runtime.hpp>
#include <holdfast/runtime/ucx_device.hpp>

#include <execinfo.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <sstream>

namespace holdfast::testing::processes {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr auto shutdown_deadline = 3s;

// Where it fell, for whoever reads the log; the system's own end follows.
void say_where(int number) noexcept {
  void* frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), STDERR_FILENO);
  ::signal(number, SIG_DFL);
  ::raise(number);
}

class node {
 public:
  explicit node(const std::map<std::string, std::string>& words);
  int run();

 private:
  std::uint64_t number(const char* name) const { return std::stoull(words_.at(name)); }
  void say(const std::string& line);
  void wrong(const std::string& sentence);
  bool open();
  void obey(const std::string& line);
  void wait_for_wishes();
  void read_lines(int wait_ms);
  std::string state();
  void end(bool quietly);
  void give_back();
  void look_at_operations();

  const std::map<std::string, std::string> words_;
  const milliseconds bound_;
  bool well_ = true;
  bool over_ = false;
  std::string input_;
  // Destroyed bottom-up: what fetches before what it uses.
  platform::host host_{2};
  std::optional<runtime> core_;
  std::optional<traffic> traffic_;
  awake_clock clock_;
  std::optional<awake_clock::duration> calm_by_, quiet_by_;
};

node::node(const std::map<std::string, std::string>& words) : words_(words), bound_(number("bound_ms")) {}

void node::say(const std::string& line) {
  const std::string whole = line + '\n';
  for (std::size_t at = 0; at < whole.size();) {
    const ssize_t written = ::write(answers_descriptor, whole.data() + at, whole.size() - at);
    if (written < 0 && errno == EINTR) continue;
    // Whoever listened is gone, and so is any use of this process.
    if (written <= 0) ::_exit(1);
    at += static_cast<std::size_t>(written);
  }
}

void node::wrong(const std::string& sentence) {
  well_ = false;
  say("wrong " + sentence);
}

bool node::open() {
  runtime_options options;
  options.pinned.initial_arena_bytes = std::uint64_t{512} << 10;
  options.pinned.max_arena_bytes = std::uint64_t{4} << 20;
  options.pinned.dedicated_arena_min = std::uint64_t{2} << 20;
  options.pinned.registered_bytes_budget = std::uint64_t{96} << 20;
  options.pinned.arena_reclaim_after_ns = 50'000'000;
  options.pinned.retain_arena_bytes = 0;
  options.recorded_events = std::size_t{1} << 15;
  options.recorded_level = event_level::trace;
  ucx_device_options ucx;
  ucx.transport.listen_address = words_.at("listen");
  ucx.transport.worker_id = number("worker");
  ucx.transport.shared_memory = number("memory") != 0;
  traffic_rules rules;
  rules.seed = number("seed");
  rules.bound = bound_;
  ucx.transport.connect_timeout = rules.connect_timeout;
  ucx.transport.peer_suspect_after = 500ms;
  // Sanitizers and busy machines.
  ucx.transport.startup_timeout = 60s;
  ucx.transport.probe_timeout = 30s;
  auto made = runtime::create(host_, options, ucx_device(std::move(ucx)));
  if (!made) {
    wrong("the node did not start: " + made.error().text());
    return false;
  }
  core_.emplace(std::move(*made));
  traffic_.emplace(*core_, rules, [this](const std::string& sentence) { wrong(sentence); });
  const auto offered = traffic_->serve(number("bytes"), rules.seed);
  if (!offered) return false;
  std::string line = smoke::to_line(*offered);
  line.pop_back();
  say(line.insert(line.find(' '), ' ' + words_.at("seed")));
  return true;
}

std::string node::state() {
  const auto memory = core_->pinned().snapshot();
  const auto net = core_->peers()->snapshot();
  std::uint64_t holds = 0, quarantined_bytes = 0, ready = 0;
  for (const auto* list : {&memory.arenas, &memory.retiring})
    for (const auto& arena : *list) {
      holds += arena.holds;
      quarantined_bytes += arena.quarantined_bytes;
    }
  ready = net.connections[static_cast<std::size_t>(transport::connection_state::ready)];
  const auto text = [](const char* name, std::uint64_t value) {
    return ' ' + std::string(name) + '=' + std::to_string(value);
  };
  return text("registered", memory.budget.registered_bytes) + text("transfers", memory.gate.transfers) +
         text("in_flight", memory.pool.in_flight) + text("holds", holds) +
         text("quarantined", memory.quarantined.size()) + text("quarantined_bytes", quarantined_bytes) +
         text("queued", net.operations.queued) + text("posted", net.operations.posted) +
         text("orphaned", net.operations.orphaned) + text("ended_operations", net.operations.ended) +
         text("parked", net.endpoints_parked) + text("ready", ready) + ' ' + traffic_->counts().text();
}

void node::obey(const std::string& line) {
  std::istringstream in(line);
  std::string what;
  in >> what;
  std::size_t place = 0;
  if (what == "peer") {
    neighbor whom;
    in >> place >> whom.seed;
    std::string rest;
    std::getline(in >> std::ws, rest);
    auto offered = smoke::parse_offer(rest);
    if (!offered || place >= traffic::neighbors_max) return wrong("no offer: " + line);
    whom.offered = std::move(*offered);
    traffic_->know(place, std::move(whom));
  } else if (what == "dead") {
    in >> place;
    traffic_->mourn(place);
  } else if (what == "traffic") {
    std::string how;
    in >> how;
    traffic_->set_on(how == "on");
  } else if (what == "fetch") {
    std::uint64_t bytes = 0;
    in >> place >> bytes;
    traffic_->fetch(place, bytes, [this](const result<void>& outcome) {
      say("fetched " + (outcome ? std::string("ok") : std::string(name_of(outcome.error().code))));
    });
  } else if (what == "cancel") {
    say("cancelled " + std::to_string(traffic_->cancel_all()));
  } else if (what == "revoke" || what == "close") {
    peer_id who;
    in >> who.worker_id >> who.incarnation;
    if (what == "revoke")
      core_->peers()->async_revoke(who, [](auto) {});
    else
      core_->peers()->async_close(who, core_->now() + 300ms, [](auto) {});
  } else if (what == "calm") {
    traffic_->begin_calm();
    calm_by_ = clock_.now() + bound_;
  } else if (what == "quiet") {
    traffic_->set_on(false);
    quiet_by_ = clock_.now() + bound_;
  } else if (what == "state") {
    // Without a number: nobody waits for this answer.
    std::uint64_t asked = 0;
    in >> asked;
    traffic_->look_at_everything();
    say("state asked=" + std::to_string(asked) + state());
  } else if (what == "end") {
    std::string how;
    in >> how;
    end(how == "quiet");
  } else {
    wrong("no command: " + line);
  }
}

void node::wait_for_wishes() {
  const auto now = clock_.now();
  if (calm_by_ && (traffic_->calm() || now > *calm_by_)) {
    say(traffic_->calm() ? "calm" : "stuck" + state());
    calm_by_.reset();
  }
  if (!quiet_by_) return;
  const auto net = core_->peers()->snapshot();
  // The close of a parked endpoint ends with the worker, as the endpoint does.
  const bool quiet = traffic_->idle() && net.operations.queued == 0 &&
                     net.operations.posted <= net.operations.orphaned + net.endpoints_parked;
  if (!quiet && now <= *quiet_by_) return;
  if (!quiet) wrong("transfers did not end after everything was well again:" + state());
  quiet_by_.reset();
  say("quiet");
}

// Every buffer goes; what stays registered is what fetches of unknown fate hold.
void node::give_back() {
  traffic_->drop_buffers();
  const auto floor = [this](std::uint64_t& held_bytes) {
    const auto memory = core_->pinned().snapshot();
    held_bytes = 0;
    for (const auto* list : {&memory.arenas, &memory.retiring})
      for (const auto& arena : *list)
        if (arena.holds != 0 || arena.quarantined_bytes != 0) held_bytes += arena.charge_bytes;
    return memory.budget.registered_bytes == held_bytes;
  };
  std::uint64_t held_bytes = 0;
  for (const auto until = clock_.now() + bound_; !floor(held_bytes);) {
    if (clock_.now() > until)
      return wrong("registered bytes did not come back to the " + std::to_string(held_bytes) +
                   " that are held: " + core_->pinned().snapshot().to_json());
    ::poll(nullptr, 0, 5);
  }
}

void node::look_at_operations() {
  // The ring keeps the newest: whatever was accepted in it has its end in it.
  std::map<std::uint64_t, std::pair<int, int>> seen;
  for (const event_record& event : core_->events().copy_recent()) {
    if (event.id == event_id::operation_accepted) ++seen[event.fields[0]].first;
    if (event.id == event_id::operation_ended) ++seen[event.fields[0]].second;
  }
  for (const auto& [operation, count] : seen)
    if (count.first > 1 || count.second != 1)
      wrong("operation " + std::to_string(operation) + " was accepted " + std::to_string(count.first) +
            " times and ended " + std::to_string(count.second) + " times");
}

void node::end(bool quietly) {
  over_ = true;
  traffic_->set_on(false);
  if (quietly) give_back();
  traffic_->look_at_everything();
  smoke::awaited<result<runtime_report>> told;
  const auto began = clock_.now();
  core_->async_shutdown(core_->now() + shutdown_deadline, told.handler());
  while (!told.wait(20ms)) {
    traffic_->step();
    if (clock_.now() - began > shutdown_deadline + bound_) {
      wrong("the shutdown did not return by its deadline");
      // Threads of the core still run: nothing may be taken from under them.
      ::_exit(1);
    }
  }
  const auto took = std::chrono::duration_cast<milliseconds>(clock_.now() - began);
  if (!told.answer()) return wrong("the shutdown failed: " + told.answer().error().text());
  const runtime_report& report = *told.answer();
  // What is due at the deadline may be late by what a busy machine needs to run it.
  if (took > shutdown_deadline + bound_ / 2) wrong("the shutdown took " + std::to_string(took.count()) + " ms of 3000");
  if (!report.clean()) wrong("something is left: " + report.to_json());
  for (const auto until = clock_.now() + bound_; !traffic_->idle() && clock_.now() < until; ::poll(nullptr, 0, 5))
    traffic_->step();
  if (!traffic_->idle()) wrong("the shutdown returned, and somebody still waits");
  const auto net = core_->peers()->snapshot();
  if (net.operations.queued != 0 || net.operations.posted != 0 || net.operations.orphaned != 0)
    wrong("operations are left in the table");
  look_at_operations();
  // The worker is gone: from here on nobody writes, and what was held may be looked at by nobody.
  traffic_->drop_buffers();
  say("ended took_ms=" + std::to_string(took.count()) +
      " transfers=" + std::to_string(report.pinned.transfers_outstanding) + " not_submitted=" +
      std::to_string(report.pinned.arenas_not_submitted) + " registered=" + std::to_string(report.bytes_registered) +
      " ended_operations=" + std::to_string(net.operations.ended) + " swept=" + std::to_string(net.operations.swept) +
      ' ' + traffic_->counts().text());
}

void node::read_lines(int wait_ms) {
  pollfd what{STDIN_FILENO, POLLIN, 0};
  if (::poll(&what, 1, wait_ms) <= 0) return;
  char some[4096];
  const ssize_t got = ::read(STDIN_FILENO, some, sizeof some);
  if (got < 0 && errno == EINTR) return;
  // The driver is gone.
  if (got <= 0) ::_exit(1);
  input_.append(some, static_cast<std::size_t>(got));
  for (std::size_t end = input_.find('\n'); end != input_.npos && !over_; end = input_.find('\n')) {
    const std::string line = input_.substr(0, end);
    input_.erase(0, end + 1);
    obey(line);
  }
}

int node::run() {
  if (!open()) return 1;
  while (!over_) {
    traffic_->step();
    wait_for_wishes();
    if (!over_) read_lines(1);
  }
  traffic_.reset();
  core_.reset();
  return well_ ? 0 : 1;
}

}  // namespace

int run_node(const std::vector<std::string>& words) {
  std::map<std::string, std::string> values;
  for (const std::string& word : words) values[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have died before that was asked for.
  if (std::to_string(::getppid()) != values.at("parent")) return 1;
  ::signal(SIGPIPE, SIG_IGN);
  // The first call loads a library, which takes memory from the heap; a handler may not.
  void* frame = nullptr;
  ::backtrace(&frame, 1);
  ::signal(SIGABRT, &say_where);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  ::signal(SIGSEGV, &say_where);  // sanitizers say it themselves
#endif
  return node(values).run();
}

}  // namespace holdfast::testing::processes
