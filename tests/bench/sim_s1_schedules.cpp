// S1: schedules and choices a second of the smallest interesting scenario, recording on.
//
// MTX-2x2: two threads, each twice (lock, read, write, unlock) on one mutex, and a final assertion. One world is made,
// run and destroyed for each schedule, as in a campaign. Prints rows in the form of `./dev bench`.
// Rounds with and without recording are interleaved and judged by their ratio; medians of seven.
#include <holdfast/base/lock_class.hpp>
#include <holdfast/platform/atomic.hpp>
#include <holdfast/platform/mutex.hpp>

#include <sim/kernel/strategies/random.hpp>
#include <sim/kernel/world.hpp>
#include <tests/bench/sim_rows.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

namespace hf = holdfast;
namespace bench = holdfast::bench;
namespace sim = holdfast::sim;

constexpr hf::lock_class kind{500, true, "mutex"};

struct rates {
  double schedules;
  double points;
  double choices;
  double bytes_per_choice;
};

rates round_of(bool record, std::uint64_t first_seed, std::uint64_t schedules) {
  sim::random_strategy strategy(sim::random_weights{500, 0});
  std::uint64_t choices = 0;
  std::uint64_t bytes = 0;
  std::uint64_t points = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < schedules; ++i) {
    sim::world_settings settings;
    settings.seed = first_seed + i;
    settings.record_choices = record;
    sim::world world(settings, strategy);
    sim::host& host = world.add_host("a");
    hf::platform::mutex mutex(kind);
    hf::platform::atomic<int> value{0};
    for (int t = 0; t < 2; ++t)
      host.spawn(t == 0 ? "one" : "two", [&mutex, &value] {
        for (int n = 0; n < 2; ++n) {
          mutex.lock();
          const int seen = value.load();
          value.store(seen + 1);
          mutex.unlock();
        }
      });
    if (world.run() != sim::run_end::clean || value.load() != 4) {
      std::fprintf(stderr, "S1: seed %llu went wrong\n", static_cast<unsigned long long>(settings.seed));
      std::exit(1);
    }
    choices += world.choice_count();
    points += world.step_count();
    bytes += world.choices().size();
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {static_cast<double>(schedules) / seconds, static_cast<double>(points) / seconds,
          static_cast<double>(choices) / seconds,
          record ? static_cast<double>(bytes) / static_cast<double>(choices) : 0.0};
}

}  // namespace

int main(int argc, char** argv) {
  using bench::median;
  constexpr std::uint64_t schedules = 100'000;
  round_of(true, 1, schedules / 10);
  std::vector<double> rate, point_rate, choice_rate, bytes, cost;
  for (std::uint64_t i = 0; i < 7; ++i) {
    const rates on = round_of(true, 1 + i * schedules, schedules);
    const rates off = round_of(false, 1 + i * schedules, schedules);
    rate.push_back(on.schedules);
    point_rate.push_back(on.points);
    choice_rate.push_back(on.choices);
    bytes.push_back(on.bytes_per_choice);
    cost.push_back(off.schedules / on.schedules - 1);
  }
  bench::sim_rows rows;
  rows.add("S1 MTX-2x2, random, recording", median(rate) / 1e6, "M schedules/s", 2.2, median(rate) >= 2.2e6);
  rows.add("S1 scheduling points, recording", median(point_rate) / 1e6, "M points/s", 40, median(point_rate) >= 40e6);
  rows.add("S1 choices (points with two or more enabled), recording", median(choice_rate) / 1e6, "M choices/s", 40,
           median(choice_rate) >= 40e6);
  rows.add("S1 recorded size", median(bytes), "B/choice", 1.5, median(bytes) <= 1.5);
  rows.add("S1 cost of recording", median(cost) * 100, "%", 15, median(cost) <= 0.15);
  rows.print(argc, argv);
}
