// Scenarios of GETs between hosts: cancelled, orphaned by a crash, stuck behind a stopped peer, and the wakeups that
// carry them.
#include <sim/scenarios/builtin.hpp>
#include <sim/scenarios/fleet.hpp>

#include <sim/kernel/random.hpp>

#include <string>

namespace holdfast::sim {

namespace {

constexpr std::int64_t granule = 4096;

// "a" offers `count` buffers of `bytes`, named "page-0" and so on, and keeps them.
void offer(plan& made, std::int64_t count, std::int64_t bytes) {
  for (std::int64_t i = 0; i < count; ++i) {
    made.ops.push_back(make_op("a/owner", "alloc", {{"slot", i}, {"bytes", bytes}}));
    made.ops.push_back(make_op("a/owner", "fill", {{"slot", i}, {"seed", 40 + i}}));
    made.ops.push_back(make_op("a/owner", "publish", {{"slot", i}}, {{"name", "page-" + std::to_string(i)}}));
  }
}

class get_cancelled final : public scenario {
 public:
  std::string_view name() const noexcept override { return "get-cancelled"; }
  std::string_view text() const noexcept override {
    return "a GET is given up at any moment and its room is wanted at once by the next tenant (B01, B02)";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"rounds", "GETs that are given up", 2, 1, 100},
            {"granules", "size of each transfer, in granules of 4096", 4, 1, 64}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "get-cancelled");
    const std::int64_t bytes = p.at("granules") * granule;
    plan made;
    offer(made, 1, bytes);
    made.ops.push_back(make_op("b/app", "connect", {}, {{"host", "a"}}));
    for (std::int64_t i = 0; i < p.at("rounds"); ++i) {
      made.ops.push_back(make_op("b/app", "alloc", {{"slot", 0}, {"bytes", bytes}}));
      made.ops.push_back(make_op("b/app", "get_start", {{"slot", 0}}, {{"name", "page-0"}}));
      if (draw.chance(600))
        made.ops.push_back(make_op("b/app", "sleep", {{"ns", static_cast<std::int64_t>(draw.below(60'000))}}));
      made.ops.push_back(make_op(draw.chance(700) ? "b/app" : "b/canceller", "cancel", {{"slot", 0}}));
      made.ops.push_back(make_op("b/app", "await", {{"slot", 0}}));
      // The next tenants: small enough to fall where the abandoned GET still writes, if its room were free.
      for (std::int64_t t = 1; t <= 2; ++t) {
        made.ops.push_back(make_op("b/app", draw.chance(500) ? "try_alloc" : "alloc", {{"slot", t}, {"bytes", bytes}}));
        made.ops.push_back(make_op("b/app", "fill", {{"slot", t}, {"seed", 7 * i + t}}));
      }
      made.ops.push_back(make_op("b/app", "sleep", {{"ns", static_cast<std::int64_t>(draw.below(200'000))}}));
      for (std::int64_t t = 1; t <= 2; ++t) {
        made.ops.push_back(make_op("b/app", "check", {{"slot", t}}));
        made.ops.push_back(make_op("b/app", "free", {{"slot", t}}));
      }
      made.ops.push_back(make_op("b/app", "free", {{"slot", 0}}));
    }
    if (draw.chance(400))
      made.faults.push_back({"fabric.delay", "", draw.between(1, 12), draw.between(1, 3), "delay", 80'000});
    if (draw.chance(250)) made.faults.push_back({"ucp.get.inline", "b", draw.between(1, 3), 1, "inline", 0});
    if (draw.chance(150)) made.faults.push_back({"ucp.get.error", "b", draw.between(1, 3), 1, "error", 0});
    if (draw.chance(150)) made.faults.push_back({"ucp.ep.fail", "b", draw.between(1, 3), 1, "fail", 0});
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b"};
    // Room for two transfers and no third (B02).
    how.pool.initial_arena_bytes = static_cast<std::uint64_t>(2 * p.at("granules") * granule);
    how.pool.max_arena_bytes = how.pool.initial_arena_bytes;
    how.pool.dedicated_arena_min = how.pool.initial_arena_bytes;
    how.pool.registered_bytes_budget = how.pool.initial_arena_bytes;
    return start_fleet(w, how, what);
  }
};

class peer_dies final : public scenario {
 public:
  std::string_view name() const noexcept override { return "peer-dies"; }
  std::string_view text() const noexcept override {
    return "the owner crashes while GETs from it are in flight; each ends once, nothing of it reaches the next tenant";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"gets", "GETs in flight", 3, 1, 16}, {"granules", "size of each, in granules of 4096", 3, 1, 64}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "peer-dies");
    const std::int64_t bytes = p.at("granules") * granule;
    plan made;
    offer(made, 1, bytes);
    made.ops.push_back(make_op("b/app", "connect", {}, {{"host", "a"}}));
    for (std::int64_t i = 0; i < p.at("gets"); ++i) {
      made.ops.push_back(make_op("b/app", "alloc", {{"slot", i}, {"bytes", bytes}}));
      made.ops.push_back(make_op("b/app", "get_start", {{"slot", i}}, {{"name", "page-0"}}));
    }
    made.ops.push_back(make_op("c/killer", "connect", {}, {{"host", "a"}}));
    if (draw.chance(500))
      made.ops.push_back(make_op("b/app", "sleep", {{"ns", static_cast<std::int64_t>(draw.below(80'000))}}));
    made.ops.push_back(make_op("b/app", "crash", {}, {{"host", "a"}}));
    if (draw.chance(300)) made.ops.push_back(make_op("b/app", "cancel", {{"slot", 0}}));
    for (std::int64_t i = 0; i < p.at("gets"); ++i) made.ops.push_back(make_op("b/app", "await", {{"slot", i}}));
    made.ops.push_back(make_op("b/app", "alloc", {{"slot", 20}, {"bytes", bytes}}));
    made.ops.push_back(make_op("b/app", "fill", {{"slot", 20}, {"seed", 9}}));
    made.ops.push_back(make_op("b/app", "sleep", {{"ns", 60'000'000}}));
    made.ops.push_back(make_op("b/app", "check", {{"slot", 20}}));
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters&,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b", "c"};
    return start_fleet(w, how, what);
  }
};

class get_never_ends final : public scenario {
 public:
  std::string_view name() const noexcept override { return "get-never-ends"; }
  std::string_view text() const noexcept override {
    return "the owner is stopped, so a GET stays pending; shutdown returns by its deadline and counts what it could "
           "not confirm";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"gets", "GETs in flight", 2, 1, 16},
            {"deadline_us", "deadline of the shutdown, in microseconds", 500, 0, 1'000'000}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "get-never-ends");
    plan made;
    offer(made, 1, 2 * granule);
    made.ops.push_back(make_op("b/app", "connect", {}, {{"host", "a"}}));
    for (std::int64_t i = 0; i < p.at("gets"); ++i)
      made.ops.push_back(make_op("b/app", "alloc", {{"slot", i}, {"bytes", 2 * granule}}));
    made.ops.push_back(make_op("b/app", "wait", {}, {{"name", "page-0"}}));
    made.ops.push_back(make_op("b/app", "pause", {}, {{"host", "a"}}));
    for (std::int64_t i = 0; i < p.at("gets"); ++i)
      made.ops.push_back(make_op("b/app", "get_start", {{"slot", i}}, {{"name", "page-0"}}));
    if (draw.chance(400)) made.ops.push_back(make_op("b/app", "cancel", {{"slot", 0}}));
    if (draw.chance(400)) made.ops.push_back(make_op("b/other", "alloc", {{"slot", 30}, {"bytes", 20 * granule}}));
    made.ops.push_back(make_op("b/app", "shutdown", {{"deadline_ns", p.at("deadline_us") * 1000}}));
    made.ops.push_back(make_op("b/app", "resume", {}, {{"host", "a"}}));
    for (std::int64_t i = 0; i < p.at("gets"); ++i) made.ops.push_back(make_op("b/app", "await", {{"slot", i}}));
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters&,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b"};
    return start_fleet(w, how, what);
  }
};

class wakeups final : public scenario {
 public:
  std::string_view name() const noexcept override { return "wakeups"; }
  std::string_view text() const noexcept override {
    return "events and submissions fall at every point of progress, arm, re-check and sleep (B16)";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"gets", "GETs, one after the other, of each of two threads", 3, 1, 100},
            {"spin_ns", "spinning before sleeping", 0, 0, 1'000'000}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "wakeups");
    plan made;
    offer(made, 1, 256);
    for (std::int64_t t = 0; t < 2; ++t) {
      const std::string who = "b/app-" + std::to_string(t);
      made.ops.push_back(make_op(who, "connect", {}, {{"host", "a"}}));
      made.ops.push_back(make_op(who, "alloc", {{"slot", t}, {"bytes", 256}}));
      for (std::int64_t i = 0; i < p.at("gets"); ++i) {
        made.ops.push_back(make_op(who, "get", {{"slot", t}}, {{"name", "page-0"}}));
        if (draw.chance(500))
          made.ops.push_back(make_op(who, "sleep", {{"ns", static_cast<std::int64_t>(draw.below(30'000))}}));
      }
    }
    if (draw.chance(400))
      made.faults.push_back({"ucp.arm.busy", "b", draw.between(1, 8), draw.between(1, 3), "busy", 0});
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b"};
    how.progress_spin_ns = p.at("spin_ns");
    return start_fleet(w, how, what);
  }
};

class startup final : public scenario {
 public:
  std::string_view name() const noexcept override { return "startup"; }
  std::string_view text() const noexcept override {
    return "a step of the start-up fails; the host is absent and nothing of it is left, or it works";
  }
  plan generate(const parameters&, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "startup");
    plan made;
    made.ops.push_back(make_op("a/app", "alloc", {{"slot", 0}, {"bytes", 2 * granule}}));
    made.ops.push_back(make_op("a/app", "free", {{"slot", 0}}));
    made.ops.push_back(make_op("b/app", "connect", {}, {{"host", "a"}}));
    struct step {
      const char* where;
      const char* what;
      std::uint64_t last;  // pass of the start-up that is the last one worth failing
    };
    constexpr step steps[] = {
        {"driver.open", "absent", 1},
        {"ucp.init", "error", 1},
        {"ucp.worker.create", "error", 1},
        {"ucp.listener.create", "error", 1},
        {"ucp.ep.create", "error", 2},
        {"ucp.am.error", "error", 2},
        {"thread.start", "refuse", 2},
        {"nic.register", "refuse", 2},
        {"ucp.rkey.pack", "error", 2},
        {"ucp.rkey.unpack", "error", 1},
        {"ucp.get.error", "error", 1},
        {"pages.allocate", "refuse", 2},
        {"heap", "fail", 12},
    };
    const step& failing = steps[draw.below(std::size(steps))];
    made.faults.push_back({failing.where, "a", draw.between(1, failing.last), 1, failing.what, 0});
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters&,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b"};
    how.calm_start = false;
    return start_fleet(w, how, what);
  }
};

}  // namespace

void add_get_scenarios() {
  add_scenario(std::make_unique<startup>());
  add_scenario(std::make_unique<get_cancelled>());
  add_scenario(std::make_unique<peer_dies>());
  add_scenario(std::make_unique<get_never_ends>());
  add_scenario(std::make_unique<wakeups>());
}

}  // namespace holdfast::sim
