#include <holdfast/platform/abi.hpp>

#include <tests/processes/network.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

extern char** environ;

namespace holdfast::testing::processes {

namespace {

constexpr const char* nobody = "02:68:66:00:00:fe";

std::string hardware_of(unsigned node) { return "02:68:66:00:00:0" + std::to_string(node + 1); }

// Empty, or what it said.
std::string ip(const std::vector<std::string>& words) {
  std::vector<std::string> all{"ip"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int says[2];
  if (::pipe2(says, O_CLOEXEC) != 0) return "pipe2";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, says[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, says[1], STDERR_FILENO);
  pid_t pid = -1;
  const int failed = ::posix_spawnp(&pid, "ip", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(says[1]);
  std::string text;
  char some[256];
  for (ssize_t got = 0; failed == 0 && (got = ::read(says[0], some, sizeof some)) > 0;)
    text.append(some, static_cast<std::size_t>(got));
  ::close(says[0]);
  if (failed != 0) return std::string("ip: ") + std::strerror(failed);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  std::string command;
  for (const std::string& word : all) command += word + ' ';
  return command + "answered: " + (text.empty() ? "nothing" : text.substr(0, text.find('\n')));
}

}  // namespace

network::network(unsigned nodes) : prefix_("holdfast" + std::to_string(::getpid()) + "n"), nodes_(nodes) {}

std::string network::name(unsigned node) const { return prefix_ + (node < nodes_ ? std::to_string(node) : "x"); }
std::string network::address(unsigned node) const { return "10.77.0." + std::to_string(node + 1); }
std::vector<std::string> network::inside(unsigned node) const { return {"ip", "netns", "exec", name(node)}; }

std::expected<std::unique_ptr<network>, std::string> network::make(unsigned nodes) {
  if (::geteuid() != 0) return std::unexpected("network namespaces need root");
  std::unique_ptr<network> made(new network(nodes));
  const std::string middle = made->name(nodes);
  std::string wrong = ip({"netns", "add", middle});
  const auto then = [&wrong](const std::vector<std::string>& words) {
    if (wrong.empty()) wrong = ip(words);
  };
  then({"-n", middle, "link", "add", "middle", "type", "bridge"});
  then({"-n", middle, "link", "set", "middle", "up"});
  for (unsigned i = 0; i < nodes; ++i) {
    const std::string here = made->name(i);
    const std::string port = "to" + std::to_string(i);
    then({"netns", "add", here});
    then({"-n", here, "link", "set", "lo", "up"});
    then({"-n", middle, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", here});
    then({"-n", middle, "link", "set", port, "master", "middle"});
    then({"-n", middle, "link", "set", port, "up"});
    then({"-n", here, "link", "set", "eth0", "address", hardware_of(i)});
    then({"-n", here, "address", "add", made->address(i) + "/24", "dev", "eth0"});
    then({"-n", here, "link", "set", "eth0", "up"});
  }
  for (unsigned i = 0; i < nodes && wrong.empty(); ++i)
    for (unsigned j = 0; j < nodes && wrong.empty(); ++j)
      if (i != j) wrong = made->heal(i, j);
  if (!wrong.empty()) return std::unexpected(std::move(wrong));
  return made;
}

network::~network() {
  for (unsigned i = 0; i <= nodes_; ++i) static_cast<void>(ip({"netns", "delete", name(i)}));
}

std::string network::neighbor(unsigned from, unsigned to, const std::string& hardware) {
  return ip(
      {"-n", name(from), "neighbor", "replace", address(to), "lladdr", hardware, "dev", "eth0", "nud", "permanent"});
}

std::string network::cut(unsigned from, unsigned to) { return neighbor(from, to, nobody); }
std::string network::heal(unsigned from, unsigned to) { return neighbor(from, to, hardware_of(to)); }

}  // namespace holdfast::testing::processes
