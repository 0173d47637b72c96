// P1: allocate and free 64 KiB from a warm arena, one thread, all accounting on, against malloc and free of the C
// library. Both sides run interleaved in this one process; a figure is the median of its rounds.
//
// The pool registers with the host backend, whose system calls are replaced by nothing: no registration happens in the
// measured part anyhow, and locking 64 MiB needs a privilege.
#include <holdfast/platform/abi.hpp>

#include <holdfast/backends/host/host_backend.hpp>
#include <holdfast/base/block.hpp>
#include <holdfast/base/capacity_ledger.hpp>
#include <holdfast/base/frame_pool.hpp>
#include <holdfast/base/task.hpp>
#include <holdfast/pinned/pool.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <utility>
#include <vector>

namespace {

using bench_clock = std::chrono::steady_clock;
constexpr std::size_t bytes = 64 * 1024;
// Short rounds, many of them: on a busy machine most rounds then run without being interrupted.
constexpr int rounds = 401;
constexpr int pairs_a_round = 5'000;

template <class T>
void keep(T* value) {
  asm volatile("" : : "r"(value) : "memory");
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <class F>
double ns_a_pair(F pair) {
  const auto begin = bench_clock::now();
  for (int i = 0; i < pairs_a_round; ++i) pair();
  return std::chrono::duration<double, std::nano>(bench_clock::now() - begin).count() / pairs_a_round;
}

int nothing(const void*, std::size_t) noexcept { return 0; }
std::uint64_t unlimited() noexcept { return UINT64_MAX; }

int fail(const holdfast::error& why) {
  std::fprintf(stderr, "real_p1_pinned_pool: %s\n", why.text().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace holdfast;
  if (argc > 2 || (argc == 2 && std::strcmp(argv[1], "--json") != 0)) {
    std::fputs("usage: real_p1_pinned_pool [--json]\n", stderr);
    return 2;
  }
  platform::host host;
  event_log log(host.clock(), 4096);  // the flight recorder is on, at its usual level
  frame_pool frames;
  const task_environment environment(host.executor(), host.clock(), log, frames);
  capacity_ledger ledger(1, std::uint64_t{1} << 30, log);
  static constexpr memory_calls calls{nothing, nothing, unlimited};
  auto device = host_backend::create(log, 1, calls);
  if (!device) return fail(device.error());
  int code = 0;
  {
    auto pool = pinned::memory::create(1, host.pages(), environment, ledger, **device, {});
    if (!pool) return fail(pool.error());
    {
      auto warm = pool->async_alloc(bytes, block);
      if (!warm) return fail(warm.error());
    }

    std::vector<double> ours, glibc;
    for (int round = 0; round < rounds; ++round) {
      ours.push_back(ns_a_pair([&pool] {
        auto taken = pool->try_alloc(bytes);
        keep(&taken);
      }));
      glibc.push_back(ns_a_pair([] {
        void* const taken = std::malloc(bytes);
        keep(taken);
        std::free(taken);
      }));
    }
    std::vector<double> single;
    single.reserve(1'000'000);
    for (int i = 0; i < 1'000'000; ++i) {
      const auto begin = bench_clock::now();
      {
        auto taken = pool->try_alloc(bytes);
        keep(&taken);
      }
      single.push_back(std::chrono::duration<double, std::nano>(bench_clock::now() - begin).count());
    }
    std::nth_element(single.begin(), single.begin() + 999'000, single.end());

    const double mine = median(ours), theirs = median(glibc);
    const double tail = single[999'000];
    nlohmann::json rows = nlohmann::json::array();
    rows.push_back({{"id", "P1"},
                    {"ours", mine},
                    {"unit", "ns/pair"},
                    {"others", {{"glibc", theirs}}},
                    {"ratio_to_best", mine / theirs},
                    {"goal", 25},
                    {"met", mine <= 25}});
    rows.push_back({{"id", "P1 p99.9"},
                    {"ours", tail},
                    {"unit", "ns/pair, with the clock"},
                    {"others", nlohmann::json::object()},
                    {"ratio_to_best", nullptr},
                    {"goal", 200},
                    {"met", tail <= 200}});
    if (argc == 2) {
      std::cout << rows.dump() << "\n";
    } else {
      for (const auto& row : rows) std::cout << row.dump() << "\n";
    }
    const auto report = pool->async_shutdown(host.clock().now() + std::chrono::seconds(10), block);
    if (!report) code = fail(report.error());
  }
  if (const auto gone = (*device)->close(); !gone) code = fail(gone.error());
  return code;
}
