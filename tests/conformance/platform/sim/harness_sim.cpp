// The suite's harness in the simulator: a world with one machine for each strategy and seed, whose main fiber runs the
// body. What fails on a fiber is kept in a list of the process; gtest hears of it after the world has ended.
#include <tests/conformance/platform/harness.hpp>

#include <sim/kernel/strategies/fifo.hpp>
#include <sim/kernel/strategies/random.hpp>
#include <sim/kernel/world.hpp>

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace holdfast::conformance {

namespace {

std::vector<std::string> failures;

struct run_seen {
  std::optional<sim::violation> violated;
  std::vector<std::string> failed;
};

run_seen run_world(sim::strategy& strategy, std::uint64_t seed, unsigned executor_threads,
                   std::move_only_function<void(platform::host&)>& body) {
  run_seen seen;
  {
    sim::world world(sim::world_settings{.seed = seed}, strategy);
    sim::host& machine = world.add_host("m");
    machine.spawn("main", [&machine, &body, executor_threads] {
      platform::host host(machine, executor_threads);
      body(host);
    });
    world.run();
    seen.violated = world.violated();
  }
  seen.failed = std::exchange(failures, {});
  return seen;
}

// A strategy by the number of the run: the one without preemption first, then chance.
constexpr std::uint64_t random_runs = 24;

run_seen run_number(std::uint64_t number, unsigned executor_threads,
                    std::move_only_function<void(platform::host&)>& body) {
  if (number == 0) {
    sim::fifo_strategy fifo;
    return run_world(fifo, 1, executor_threads, body);
  }
  sim::random_strategy random(std::nullopt);  // each seed draws its own weights
  return run_world(random, number, executor_threads, body);
}

std::string name_of_run(std::uint64_t number) {
  return number == 0 ? std::string("fifo") : "random, seed " + std::to_string(number);
}

class simulated_descriptor final : public watched_descriptor, public sim::descriptor {
 public:
  explicit simulated_descriptor(sim::host& machine) : machine_(machine), number_(machine.open_descriptor(*this)) {}
  ~simulated_descriptor() override { machine_.close_descriptor(number_); }
  int number() const noexcept override { return number_; }
  void make_readable() override {
    platform::yield();  // another thread may come first, as before any system call
    readable_ = true;
    machine_.descriptor_changed(number_);
  }
  void make_unreadable() override { readable_ = false; }
  bool readable() const noexcept override { return readable_; }

 private:
  sim::host& machine_;
  bool readable_ = false;
  int number_;
};

}  // namespace

void expect(bool held, std::string_view sentence, std::source_location where) {
  if (held) return;
  // Kept beyond the world, so it may not lie in the region of a host.
  const sim::kernel_scope kernel;
  std::string text = std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": not so: ";
  text += sentence;
  failures.push_back(std::move(text));
}

void keep_time_calm() {
  const sim::kernel_scope kernel;
  sim::world::current().begin_calm();
}

void run_on_side(std::move_only_function<void(platform::host&)> body, unsigned executor_threads) {
  for (std::uint64_t number = 0; number <= random_runs; ++number) {
    const run_seen seen = run_number(number, executor_threads, body);
    for (const auto& failure : seen.failed) ADD_FAILURE() << failure << "\n  under " << name_of_run(number);
    if (seen.violated)
      ADD_FAILURE() << seen.violated->invariant << ": " << seen.violated->message << "\n  under "
                    << name_of_run(number);
    // The first run that shows a mistake is enough.
    if (seen.violated || !seen.failed.empty()) return;
  }
}

stop_seen stop_on_side(std::move_only_function<void(platform::host&)> body) {
  const run_seen seen = run_number(0, 1, body);
  stop_seen answer;
  if (seen.violated) {
    answer.stopped = true;
    answer.said = seen.violated->message;
  }
  for (const auto& failure : seen.failed) answer.said += "\n" + failure;
  return answer;
}

unsigned effort(unsigned /*real*/, unsigned simulated) noexcept { return simulated; }

std::unique_ptr<watched_descriptor> make_descriptor(platform::host& host) {
  return std::make_unique<simulated_descriptor>(host.machine());
}

}  // namespace holdfast::conformance
