// S1b: the search of all schedules, one run of each class of equivalent ones.
//
// So many threads, each so many times (lock, add, unlock) on one mutex, without a bound on preemptions. The classes are
// the orders in which the mutex is taken. A trace is a run that was not cut; the rate is traces a second, cut runs
// included in the time. Also the runs until two locks taken in two orders are noticed.
#include <holdfast/base/lock_class.hpp>
#include <holdfast/platform/mutex.hpp>

#include <sim/kernel/strategies/exhaustive.hpp>
#include <sim/kernel/world.hpp>
#include <tests/bench/sim_rows.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

namespace hf = holdfast;
namespace bench = holdfast::bench;
namespace sim = holdfast::sim;

constexpr hf::lock_class kind{500, true, "mutex"};

struct shape {
  int threads, times;
  std::uint64_t classes;
};

double traces_a_second(const shape& of) {
  const std::string names[] = {"one", "two", "three", "four"};
  sim::exhaustive_strategy chooser(sim::exhaustive_strategy::unbounded);
  const auto begin = std::chrono::steady_clock::now();
  do {
    sim::world world({}, chooser);
    sim::host& host = world.add_host("a");
    hf::platform::mutex mutex(kind);
    int value = 0;
    for (int t = 0; t < of.threads; ++t)
      host.spawn(names[t], [&mutex, &value, times = of.times] {
        for (int n = 0; n < times; ++n) {
          mutex.lock();
          ++value;
          mutex.unlock();
        }
      });
    const sim::run_end ended = world.run();
    if (ended == sim::run_end::violated || (ended == sim::run_end::clean && value != of.threads * of.times)) {
      std::fprintf(stderr, "S1b: a schedule went wrong\n");
      std::exit(1);
    }
  } while (chooser.advance());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::uint64_t traces = chooser.schedules() - chooser.cut();
  if (chooser.strayed() || traces != of.classes) {
    std::fprintf(stderr, "S1b: %llu traces instead of %llu\n", static_cast<unsigned long long>(traces),
                 static_cast<unsigned long long>(of.classes));
    std::exit(1);
  }
  return static_cast<double>(traces) / seconds;
}

// Two locks in two orders: noticed as an order that the ranks forbid, before anybody stands still.
std::uint64_t runs_until_noticed() {
  sim::exhaustive_strategy chooser(sim::exhaustive_strategy::unbounded);
  std::uint64_t runs = 0;
  do {
    ++runs;
    sim::world world({}, chooser);
    sim::host& host = world.add_host("a");
    hf::platform::mutex first(kind), second(kind);
    host.spawn("one", [&] {
      first.lock();
      second.lock();
      second.unlock();
      first.unlock();
    });
    host.spawn("two", [&] {
      second.lock();
      first.lock();
      first.unlock();
      second.unlock();
    });
    if (world.run() == sim::run_end::violated) return runs;
  } while (chooser.advance());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  bench::sim_rows rows;
  constexpr shape shapes[] = {{2, 2, 6}, {3, 2, 90}, {3, 3, 1680}, {4, 2, 2520}, {2, 8, 12870}};
  for (const shape& of : shapes) {
    std::vector<double> rates;
    for (int i = 0; i < 5; ++i) rates.push_back(traces_a_second(of));
    const double rate = bench::median(std::move(rates));
    const std::string id = "S1b " + std::to_string(of.threads) + "x" + std::to_string(of.times) + ", " +
                           std::to_string(of.classes) + " traces";
    rows.add(id.c_str(), rate / 1e3, "k traces/s", 50, rate >= 50e3);
  }
  const std::uint64_t runs = runs_until_noticed();
  rows.add("S1b runs until AB and BA is noticed", static_cast<double>(runs), "runs", 1, runs == 1);
  rows.print(argc, argv);
}
