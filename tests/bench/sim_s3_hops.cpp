// S3, second half: coroutine hops a second inside one simulated host.
//
// A hop is one resumption of a suspended task of core through its executor: posted, taken by the executor's fiber,
// resumed, with every scheduling point on the way. Two tasks share the one fiber. Beside
// it, in the same rounds, the awaiting of a child that ends without suspending: no executor, only frame and pool.
// Medians of seven rounds.
#include <holdfast/base/frame_pool.hpp>
#include <holdfast/base/task.hpp>
#include <holdfast/platform/host.hpp>
#include <holdfast/telemetry/event_log.hpp>

#include <sim/kernel/strategies/fifo.hpp>
#include <sim/kernel/world.hpp>
#include <tests/bench/sim_rows.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace {

namespace hf = holdfast;
namespace bench = holdfast::bench;
namespace sim = holdfast::sim;

struct through_the_executor {
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> task) const noexcept {
    static_cast<void>(task.promise().begin_suspension());
    task.promise().resume_later();
  }
  void await_resume() const noexcept {}
};

hf::task<hf::result<std::uint64_t>> child([[maybe_unused]] hf::task_context context, std::uint64_t value) {
  co_return value + 1;
}

hf::task<hf::result<std::uint64_t>> hopper([[maybe_unused]] hf::task_context context, std::uint64_t hops) {
  const through_the_executor hop;
  for (std::uint64_t i = 0; i < hops; ++i) co_await hop;
  co_return hops;
}

hf::task<hf::result<std::uint64_t>> parent(hf::task_context context, std::uint64_t calls) {
  std::uint64_t sum = 0;
  while (sum < calls) {
    auto next = child(context, sum);
    const hf::result<std::uint64_t> got = co_await std::move(next);
    if (!got) co_return got;
    sum = *got;
  }
  co_return sum;
}

struct counted final : hf::task_completion<hf::result<std::uint64_t>> {
  void completed(hf::result<std::uint64_t> value) noexcept override {
    if (value) hops += *value;
    ++ended;
  }
  void dropped() noexcept override {}
  std::uint64_t hops = 0;
  unsigned ended = 0;
};

/// `make` gives the task that is to be timed, `tasks` of them at once.
template <class Make>
double rate(unsigned tasks, std::uint64_t steps, Make make) {
  sim::fifo_strategy strategy;
  sim::world_settings settings;
  settings.steps_max = UINT64_MAX;
  sim::world world(settings, strategy);
  std::uint64_t done = 0;
  double seconds = 0;
  sim::host& machine = world.add_host("a");
  machine.spawn("main", [&] {
    hf::platform::host host(machine, 1);
    hf::event_log log(host.clock());
    hf::frame_pool frames;
    const hf::task_environment environment(host.executor(), host.clock(), log, frames);
    counted all;
    const auto begin = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < tasks; ++i)
      if (!start(make(hf::task_context(environment, "bench"), steps), all)) return;
    while (all.ended != tasks)
      sim::world::current().block(sim::op_kind::sleep, 0, sim::world::current().now() + 1'000'000);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    done = all.hops;
  });
  if (world.run() != sim::run_end::clean || done != tasks * steps) {
    std::fprintf(stderr, "S3: the world went wrong\n");
    std::exit(1);
  }
  return static_cast<double>(done) / seconds;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::uint64_t steps = 300'000;
  std::vector<double> hops, calls;
  for (int round = 0; round < 7; ++round) {
    hops.push_back(rate(2, steps, [](hf::task_context c, std::uint64_t n) { return hopper(c, n); }) / 1e6);
    calls.push_back(rate(1, steps, [](hf::task_context c, std::uint64_t n) { return parent(c, n); }) / 1e6);
  }
  bench::sim_rows rows;
  constexpr double goal = 5;
  const double hop = bench::median(hops), call = bench::median(calls);
  rows.add("S3 coroutine hops through the executor", hop, "M hops/s", goal, hop >= goal);
  rows.add("S3 awaiting a child that ends at once", call, "M awaits/s", goal, call >= goal);
  rows.print(argc, argv);
}
