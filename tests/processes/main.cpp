// The program of the tests between processes, of their nodes (`--node`), and of the soak (`--soak SECONDS [--seed N]`).
#include <holdfast/platform/abi.hpp>

#include <tests/processes/node.hpp>
#include <tests/processes/program.hpp>
#include <tests/processes/sequence.hpp>

#include <gtest/gtest.h>

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

// UCX keeps its configuration and its transports' tables until the process ends.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libucs.so\nleak:libuct.so\nleak:libucp.so\nleak:libucm.so\n";
}

namespace holdfast::testing::processes {

namespace {
std::uint64_t seed = 1;
}

std::uint64_t first_seed() noexcept { return seed; }

int soak(std::uint64_t seconds) {
  using namespace std::chrono_literals;
  const auto until = steady::now() + std::chrono::seconds(seconds);
  auto links = network::make(3);
  if (!links) std::printf("without cut links: %s\n", links.error().c_str());
  std::map<std::string, std::uint64_t> sums;
  for (std::uint64_t round = 0; steady::now() < until; ++round) {
    sequence what;
    what.shape.seed = seed + round;
    what.troubles = 15s;
    const std::uint64_t kind = round % (links ? 4 : 2);
    what.shape.memory = kind % 2 == 0;
    if (kind >= 2) {
      what.shape.links = links->get();
      what.shape.bound += 20s;  // a connection into a cut link may be found dead by keepalive alone
    }
    const sequence_result found = run_sequence(what);
    std::printf("seed %llu, %s%s: %s\n", static_cast<unsigned long long>(what.shape.seed),
                what.shape.memory ? "shared memory" : "tcp", kind >= 2 ? ", cut links" : "", found.text().c_str());
    for (const auto& [name, value] : found.counts) sums[name] += value;
    for (const std::string& sentence : found.failures)
      std::printf("FAILED, seed %llu: %s\n", static_cast<unsigned long long>(what.shape.seed), sentence.c_str());
    std::fflush(stdout);
    if (!found.failures.empty()) return 1;
  }
  std::printf("all: %s\n", sequence_result{{}, sums}.text().c_str());
  return 0;
}

}  // namespace holdfast::testing::processes

int main(int argc, char** argv) {
  namespace here = holdfast::testing::processes;
  if (argc > 2 && std::string_view(argv[1]) == "--node")
    return here::run_node(std::vector<std::string>(argv + 2, argv + argc));
  testing::InitGoogleTest(&argc, argv);
  ::signal(SIGPIPE, SIG_IGN);
  std::uint64_t seconds = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view word = argv[i];
    if (word == "--seed")
      here::seed = std::strtoull(argv[i + 1], nullptr, 10);
    else if (word == "--soak")
      seconds = std::strtoull(argv[i + 1], nullptr, 10);
    else
      return std::fprintf(stderr, "there are --soak SECONDS and --seed N\n"), 2;
  }
  return seconds != 0 ? here::soak(seconds) : RUN_ALL_TESTS();
}
