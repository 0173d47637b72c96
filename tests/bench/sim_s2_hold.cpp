// S2: events a second of one world, in the hold model.
//
// HOLD-1k, HOLD-100k: so many events are due; each, when it acts, puts itself off by a uniform 1 … 100,000 ns. Fibers
// there are none: what is measured is the queue of events and the way to them. Beside it runs the plainest queue with
// the same work, a std::priority_queue of times and pointers: it can neither cancel nor own what an event does. Rounds
// are interleaved; medians of seven, judged by their ratio.
#include <sim/kernel/random.hpp>
#include <sim/kernel/strategies/fifo.hpp>
#include <sim/kernel/world.hpp>
#include <tests/bench/sim_rows.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <vector>

namespace {

namespace bench = holdfast::bench;
namespace sim = holdfast::sim;

constexpr std::uint64_t delay_max_ns = 100'000;

struct held {
  sim::world* w;
  sim::random_stream random;
  std::uint64_t left;
  std::uint64_t acted = 0;

  void schedule() {
    w->at(w->now() + static_cast<std::int64_t>(random.between(1, delay_max_ns)), [this] { act(); });
  }
  void act() {
    ++acted;
    if (left != 0) {
      --left;
      schedule();
    }
  }
};

// The world is made and its queue filled before the clock starts, and emptied after it has stopped. What is timed lies
// between two events.
double world_rate(std::uint64_t held_events, std::uint64_t events) {
  sim::fifo_strategy strategy;
  sim::world_settings settings;
  settings.steps_max = UINT64_MAX;
  sim::world world(settings, strategy);
  held h{&world, sim::random_stream(7), held_events + events};
  using clock = std::chrono::steady_clock;
  clock::time_point begin, end;
  std::uint64_t at_begin = 0, at_end = 0;
  for (std::uint64_t i = 0; i < held_events; ++i) h.schedule();
  // Every event was put off once by now: the queue is in its steady state.
  world.at(delay_max_ns + 1, [&] {
    at_begin = h.acted;
    begin = clock::now();
  });
  // Events act at a rate of two per mean delay and held event.
  const auto span_ns = static_cast<std::int64_t>(static_cast<double>(events) * 0.9 / static_cast<double>(held_events) *
                                                 static_cast<double>(delay_max_ns) / 2);
  world.at(delay_max_ns + 1 + span_ns, [&] {
    end = clock::now();
    at_end = h.acted;
    h.left = 0;
  });
  if (world.run() != sim::run_end::clean || at_end <= at_begin) {
    std::fprintf(stderr, "S2: the world went wrong\n");
    std::exit(1);
  }
  return static_cast<double>(at_end - at_begin) / std::chrono::duration<double>(end - begin).count();
}

double plain_rate(std::uint64_t held_events, std::uint64_t events) {
  struct entry {
    std::int64_t time_ns;
    std::uint64_t* counter;
    bool operator<(const entry& other) const noexcept { return time_ns > other.time_ns; }
  };
  std::priority_queue<entry> queue;
  sim::random_stream random(7);
  std::uint64_t acted = 0;
  const auto delay = [&random] { return static_cast<std::int64_t>(random.between(1, delay_max_ns)); };
  for (std::uint64_t i = 0; i < held_events; ++i) queue.push({delay(), &acted});
  const auto hold = [&] {
    const entry due = queue.top();
    queue.pop();
    ++*due.counter;
    queue.push({due.time_ns + delay(), due.counter});
  };
  for (std::uint64_t i = 0; i < held_events; ++i) hold();
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < events; ++i) hold();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (acted != held_events + events) std::exit(1);
  return static_cast<double>(events) / seconds;
}

void row(bench::sim_rows& rows, const char* id, std::uint64_t held_events, double goal) {
  constexpr std::uint64_t events = 1'000'000;
  std::vector<double> ours, plain, ratio;
  for (int i = 0; i < 7; ++i) {
    ours.push_back(world_rate(held_events, events));
    plain.push_back(plain_rate(held_events, events));
    ratio.push_back(ours.back() / plain.back());
  }
  const double rate = bench::median(ours) / 1e6;
  rows.add(id, rate, "M events/s", goal, rate >= goal, "std::priority_queue", bench::median(plain) / 1e6,
           bench::median(ratio));
}

}  // namespace

int main(int argc, char** argv) {
  world_rate(1'000, 100'000);
  bench::sim_rows rows;
  row(rows, "S2 HOLD-1k, events of one world", 1'000, 10);
  row(rows, "S2 HOLD-100k, events of one world", 100'000, 5);
  rows.print(argc, argv);
}
