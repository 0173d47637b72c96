// The probes against the double of UCX, inside worlds of two processes on one machine.
//
//   driver_conformance_sim [NAME]      prints one JSON line for each probe and transport, as driver_conformance_real
//
// Each probe runs under many seeds: where the library's answer is one of several that it could give, the double draws,
// and all of its answers are listed. A misuse that the double reports is what the real library aborts at.
#include "../probe.hpp"

#include <holdfast/platform/host.hpp>
#include <holdfast/platform/pages.hpp>
#include <holdfast/platform/poller.hpp>
#include <sim/drivers/symbols.hpp>
#include <sim/hardware/fabric.hpp>
#include <sim/kernel/strategies/random.hpp>
#include <sim/kernel/world.hpp>

#include <cstdio>
#include <set>
#include <string>
#include <string_view>

namespace holdfast::driver_probe {

namespace {

constexpr std::uint64_t seeds = 24;

const ucx::ucp_table& table() {
  static const ucx::ucp_table filled = [] {
    ucx::ucp_table t;
#define HOLDFAST_UCP(name) t.name = reinterpret_cast<decltype(t.name)>(sim::find_driver_symbol("libucp.so.0", #name));
    HOLDFAST_UCP_FUNCTIONS(HOLDFAST_UCP)
    HOLDFAST_UCP_OPTIONAL_FUNCTIONS(HOLDFAST_UCP)
#undef HOLDFAST_UCP
    return t;
  }();
  return filled;
}

class sim_bench final : public bench {
 public:
  sim_bench(sim::host& here, sim::host& owner, sim::host& prober, board& between, bool memory)
      : bench(table(), between, memory), owner_(owner), prober_(prober), platform_(here) {
    auto made = platform::poller::create(platform_);
    require(made.has_value(), "no poller");
    poller_.emplace(std::move(*made));
  }
  std::int64_t now_ns() override { return sim::world::current().now(); }
  void sleep_ns(std::int64_t duration_ns) override {
    sim::world& w = sim::world::current();
    w.block(sim::op_kind::sleep, 0, w.now() + duration_ns);
  }
  bool wait_readable(int descriptor, std::int64_t within_ns) override {
    if (!added_) added_ = poller_->add(descriptor);
    const std::int64_t deadline_ns = now_ns() + within_ns;
    for (;;) {
      const auto cause = poller_->wait(platform::time_point(std::chrono::nanoseconds(deadline_ns)));
      if (cause & platform::wake_cause::descriptor) return true;
      if (now_ns() >= deadline_ns) return false;
    }
  }
  std::byte* pages(std::size_t bytes) override {
    const auto granted = platform_.pages().allocate(bytes);
    require(granted.has_value(), "no pages");
    return *granted;
  }
  void give_back(std::byte* base, std::size_t bytes) override { platform_.pages().free(base, bytes); }
  std::uint32_t owner_address() override { return sim::fabric::address_of(owner_); }
  std::uint32_t probe_address() override { return sim::fabric::address_of(prober_); }
  void strike(blow how) override {
    {
      sim::kernel_scope scope;
      sim::world& w = sim::world::current();
      w.at(w.now(), [this, how] {
        if (!owner_.alive()) return;
        if (how == blow::kill) owner_.crash();
        if (how == blow::stop && !owner_.paused()) owner_.pause();
        if (how == blow::go_on && owner_.paused()) owner_.resume();
      });
    }
    sleep_ns(1'000);
  }

 private:
  sim::host& owner_;
  sim::host& prober_;
  platform::host platform_;
  std::optional<platform::poller> poller_;
  bool added_ = false;
};

std::string run_once(const probe& p, bool memory, std::uint64_t seed) {
  board between;
  // Time moves when nobody can: a probe that waits for 2 s gives the other process its chance.
  sim::random_strategy strategy(sim::random_weights{500, 0});
  sim::world world({.seed = seed, .record_choices = false}, strategy);
  sim::host& owner = world.add_host("owner");
  sim::host& prober = world.add_host("probe");
  sim::fabric& net = sim::fabric::of(world);
  net.place(prober, net.machine_of(owner));
  owner.spawn("main", [&] {
    sim_bench b(owner, owner, prober, between, memory);
    try {
      run_owner(b);
    } catch (const failure& f) {
      sim::world::current().violate_and_stop("probe", f.sentence);
    }
  });
  prober.spawn("main", [&] {
    sim_bench b(prober, owner, prober, between, memory);
    run_probe(p, b);
    // Whoever was not stopped in order is not needed any more.
    b.strike(blow::kill);
  });
  world.run();
  if (!world.violated()) return between.answer;
  std::fprintf(stderr, "%s %s seed %lu: %s: %s\n", p.name, memory ? "memory" : "tcp", static_cast<unsigned long>(seed),
               world.violated()->invariant.c_str(), world.violated()->message.c_str());
  constexpr std::string_view misuse = "driver misuse: ";
  if (world.violated()->invariant.starts_with(misuse)) {
    if (p.how == rule::forbidden) return "misuse: " + world.violated()->invariant.substr(misuse.size());
    return "the library aborts the process";
  }
  return world.violated()->invariant;
}

void run(const probe& p, bool memory) {
  std::set<std::string> answers;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) answers.insert(run_once(p, memory, seed));
  std::printf("{\"probe\": \"%s\", \"fact\": \"%s\", \"transport\": \"%s\", \"answers\": [", p.name, p.fact,
              memory ? "shared memory" : "tcp");
  const char* between = "";
  for (const std::string& each : answers) {
    std::printf("%s\"%s\"", between, each.c_str());
    between = ", ";
  }
  std::printf("]}\n");
}

constexpr const char* word_of(rule r) {
  switch (r) {
    case rule::same: return "same";
    case rule::may: return "may";
    case rule::defect: return "defect";
    case rule::forbidden: return "forbidden";
    case rule::real_only: return "real_only";
  }
  return "?";
}

/// The questions, for the table.
void list() {
  for (const probe* const p : all_probes()) {
    std::printf(
        "{\"probe\": \"%s\", \"sentence\": \"%s\", \"rule\": \"%s\", \"relied_on_by\": \"%s\", \"specified\": "
        "\"%s\"}\n",
        p->name, p->sentence, word_of(p->how), p->relied_on_by, p->specified);
  }
}

}  // namespace

}  // namespace holdfast::driver_probe

int main(int count, char** values) {
  using namespace holdfast::driver_probe;
  const std::string_view beginning = count > 1 ? values[1] : "";
  if (beginning == "--list") {
    list();
    return 0;
  }
  for (const probe* const p : all_probes()) {
    if (p->how == rule::real_only || !std::string_view(p->name).starts_with(beginning)) continue;
    if ((p->where & over_tcp) != 0) run(*p, false);
    if ((p->where & through_memory) != 0) run(*p, true);
  }
  return 0;
}
