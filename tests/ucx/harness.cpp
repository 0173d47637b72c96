#include "tests/ucx/harness.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <thread>

extern char** environ;

namespace holdfast::testing {

namespace {

const ucx::ucp_table& loaded(event_log& log) {
  static const result<ucx::ucp_table> table = ucx::load_ucp(log);
  if (!table) {
    std::fprintf(stderr, "%s\n", table.error().text().c_str());
    std::abort();
  }
  return *table;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string out;
  char two[3];
  for (const std::byte b : bytes) {
    std::snprintf(two, sizeof(two), "%02x", std::to_integer<unsigned>(b));
    out += two;
  }
  return out;
}

packed_key key_of(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(i, 2), nullptr, 16)));
  packed_key key;
  EXPECT_TRUE(key.assign(bytes));
  return key;
}

struct waited_map final : tp::map_job {
  void mapped(const result<tp::registered_memory>& given) noexcept override {
    const std::scoped_lock lock(mutex);
    answer = given;
    changed.notify_all();
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<result<tp::registered_memory>> answer;
};

struct waited_unmap final : tp::unmap_job {
  void unmapped(tp::unmap_result) noexcept override {
    const std::scoped_lock lock(mutex);
    answered = true;
    changed.notify_all();
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool answered = false;
};

}  // namespace

std::byte pattern(std::uint64_t seed, std::size_t at) noexcept {
  return static_cast<std::byte>((seed * 0x9e37u + at * 131u + (at >> 12) * 17u) & 0xff);
}

// ---- side -----------------------------------------------------------------------------------------------------------

side::side(tp::settings values, ucx::wire_settings wire, tp::loss_handler lost)
    : log_(host_.clock(), std::size_t{1} << 16, event_level::trace) {
  const ucx::ucp_table& table = loaded(log_);
  values.destroy_is_fence = ucx::destroying_is_fence(wire);
  wire.shared_memory = values.shared_memory;
  auto made =
      tp::transport::create(host_, log_, [&] { return ucx::make_wire(table, log_, wire); }, values, std::move(lost));
  if (made)
    transport_ = std::move(*made);
  else
    failure_ = made.error();
}

side::~side() {
  if (transport_ != nullptr && !torn_down_) static_cast<void>(teardown(5s));
  transport_.reset();
}

tp::teardown_result side::teardown(platform::duration bound) {
  torn_down_ = true;
  auto answer = transport_->async_teardown(in(bound), holdfast::block);
  EXPECT_TRUE(answer.has_value());
  if (!answer) return {};
  return std::move(*answer);
}

std::vector<event_record> side::events(event_id id) const {
  std::vector<event_record> out;
  for (const event_record& record : log_.copy_recent())
    if (record.id == id) out.push_back(record);
  return out;
}

bool side::wait_for(event_id id, std::size_t count, platform::duration bound) const {
  const auto deadline = std::chrono::steady_clock::now() + bound;
  while (events(id).size() < count) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

void expect_every_operation_ended_once(const side& s) {
  std::map<std::uint64_t, int> balance;
  for (const event_record& e : s.events(event_id::operation_accepted)) ++balance[e.fields[0]];
  for (const event_record& e : s.events(event_id::operation_ended)) --balance[e.fields[0]];
  EXPECT_FALSE(balance.empty());
  for (const auto& [operation, left] : balance) EXPECT_EQ(left, 0) << "operation " << operation;
}

// ---- memory ---------------------------------------------------------------------------------------------------------

registered::registered(side& of, std::size_t bytes) : of_(of), bytes_(bytes) {
  const std::size_t page = of.host().pages().page_size();
  bytes_ = (bytes + page - 1) / page * page;
  const auto base = of.host().pages().allocate(bytes_);
  if (!base) throw std::bad_alloc();
  base_ = *base;
  waited_map job;
  job.address = base_;
  job.bytes = bytes_;
  if (!of.net().submit_map(job)) throw std::bad_alloc();
  std::unique_lock lock(job.mutex);
  job.changed.wait(lock, [&] { return job.answer.has_value(); });
  if (!*job.answer) throw std::bad_alloc();
  memory_ = **job.answer;
}

registered::~registered() {
  waited_unmap job;
  job.region = memory_.region;
  if (of_.net().submit_unmap(job)) {
    std::unique_lock lock(job.mutex);
    job.changed.wait(lock, [&] { return job.answered; });
  }
  of_.host().pages().free(base_, bytes_);
}

// ---- peer -----------------------------------------------------------------------------------------------------------

peer_process::peer_process(const options& how) {
  int down[2];
  int up[2];
  if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, down[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, up[1], STDOUT_FILENO);
  std::vector<std::string> words{"ucx_test_peer",
                                 "--peer",
                                 std::to_string(how.bytes),
                                 std::to_string(how.seed),
                                 std::to_string(how.worker_id),
                                 std::to_string(how.incarnation)};
  if (!how.connect_to.empty()) words.push_back(how.connect_to);
  if (how.again) words.push_back("again");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int failed = posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(down[0]);
  close(up[1]);
  to_child_ = down[1];
  from_child_ = up[0];
  if (failed != 0) throw std::runtime_error("posix_spawn");

  std::string line;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (line.find('\n') == std::string::npos) {
    pollfd waiting{from_child_, POLLIN, 0};
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("the peer did not start");
    if (poll(&waiting, 1, 1000) <= 0) continue;
    char some[1024];
    const ssize_t got = read(from_child_, some, sizeof(some));
    if (got <= 0) throw std::runtime_error("the peer ended before it served");
    line.append(some, static_cast<std::size_t>(got));
  }
  std::istringstream in(line);
  std::string key;
  in >> address >> identity.worker_id >> identity.incarnation >> memory.address >> memory.length >> memory.generation >>
      key;
  memory.incarnation = identity.incarnation;
  memory.key = key_of(key);
}

void peer_process::signal(int number) {
  if (pid_ <= 0) return;
  kill(pid_, number);
  // A stop takes effect when the process says so, not when it was asked.
  int status = 0;
  if (number == SIGSTOP) waitpid(pid_, &status, WUNTRACED);
}

std::optional<int> peer_process::finish() {
  if (pid_ <= 0) return std::nullopt;
  close(std::exchange(to_child_, -1));
  int status = 0;
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  bool killed = false;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (!killed && std::chrono::steady_clock::now() > deadline) {
      killed = true;
      kill(pid_, SIGKILL);
    }
    std::this_thread::yield();
  }
  pid_ = -1;
  close(std::exchange(from_child_, -1));
  if (killed || !WIFEXITED(status)) return std::nullopt;
  return WEXITSTATUS(status);
}

peer_process::~peer_process() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  if (to_child_ >= 0) close(to_child_);
  if (from_child_ >= 0) close(from_child_);
}

namespace {

void keep_connecting(side& own, const std::string& address, const std::atomic<bool>& over) {
  while (!over.load()) {
    const auto whom = own.net().async_connect(address, peer_id{}, holdfast::block);
    if (whom) static_cast<void>(own.net().async_close(*whom, own.in(50ms), holdfast::block));
  }
}

}  // namespace

int run_peer(const std::vector<std::string>& arguments) {
  const std::size_t bytes = std::stoull(arguments.at(0));
  const std::uint64_t seed = std::stoull(arguments.at(1));
  tp::settings values;
  values.worker_id = std::stoull(arguments.at(2));
  values.incarnation = std::stoull(arguments.at(3));
  const bool again = arguments.size() > 5;
  if (again) values.connect_timeout = 200ms;
  side own(values);
  if (own.failure()) {
    std::fprintf(stderr, "peer: %s\n", own.failure()->text().c_str());
    return 3;
  }
  {
    registered memory(own, bytes);
    for (std::size_t i = 0; i < memory.size(); ++i) memory.data()[i] = pattern(seed, i);
    // The progress thread reads these bytes for whoever asks. It takes the directory's lock when somebody connects; so
    // does this, and the bytes are there for it.
    static_cast<void>(own.net().snapshot());
    if (arguments.size() > 4 && !again) {
      auto connected = own.net().async_connect(arguments.at(4), peer_id{}, holdfast::block);
      if (!connected) {
        std::fprintf(stderr, "peer: %s\n", connected.error().text().c_str());
        return 4;
      }
    }
    std::printf("%s %llu %llu %llu %llu %llu %s\n", std::string(own.net().listen_address()).c_str(),
                static_cast<unsigned long long>(own.net().self().worker_id),
                static_cast<unsigned long long>(own.net().incarnation()),
                static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(memory.data())),
                static_cast<unsigned long long>(memory.size()), static_cast<unsigned long long>(memory.memory().region),
                hex(memory.memory().key.bytes()).c_str());
    std::fflush(stdout);
    std::atomic<bool> over{false};
    std::jthread connecting;
    if (again) connecting = std::jthread([&] { keep_connecting(own, arguments.at(4), over); });
    char some[64];
    while (read(STDIN_FILENO, some, sizeof(some)) > 0) {
    }
    over.store(true);
  }
  const auto ended = own.teardown(5s);
  return ended.proof.has_value() ? 0 : 5;
}

// ---- GET ------------------------------------------------------------------------------------------------------------

waited_get::waited_get(side& from, const peer_id& peer, const remote_reference& source, std::size_t offset,
                       registered& into, std::size_t bytes, bool wanted) {
  struct transfer final : tp::transfer {
    std::shared_ptr<shared> to;
    bool is_wanted = true;
    bool wanted() const noexcept override { return is_wanted; }
    void orphaned() noexcept override {
      const std::scoped_lock lock(to->mutex);
      ++to->orphaned;
      to->changed.notify_all();
    }
    void ended(tp::transfer_outcome outcome, const error& why) noexcept override {
      {
        const std::scoped_lock lock(to->mutex);
        to->end = ending{outcome, why};
        ++to->times;
        to->changed.notify_all();
      }
      delete this;
    }
  };
  auto* const made = new transfer;
  made->to = shared_;
  made->is_wanted = wanted;
  made->peer = peer;
  made->remote_address = source.address + offset;
  made->key = source.key;
  made->generation = source.generation;
  made->incarnation = source.incarnation;
  made->destination = into.data();
  made->bytes = bytes;
  made->destination_region = into.memory().region;
  submitted_ = from.net().submit_get(*made);
  if (!submitted_) delete made;
}

waited_get::~waited_get() {
  // A test that failed in between must not free memory that is still written.
  if (submitted_ && !wait(60s)) std::abort();
}

std::optional<waited_get::ending> waited_get::wait(std::chrono::nanoseconds bound) {
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait_for(lock, bound, [&] { return shared_->end.has_value(); });
  return shared_->end;
}

unsigned waited_get::times_orphaned(std::chrono::nanoseconds bound) {
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait_for(lock, bound, [&] { return shared_->orphaned != 0 || shared_->end.has_value(); });
  return shared_->orphaned;
}

unsigned waited_get::times_ended() const {
  const std::scoped_lock lock(shared_->mutex);
  return shared_->times;
}

}  // namespace holdfast::testing
