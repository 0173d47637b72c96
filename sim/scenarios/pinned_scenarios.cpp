// Scenarios of one host's pinned memory: churn, and the budget's edge.
#include <sim/scenarios/builtin.hpp>
#include <sim/scenarios/fleet.hpp>

#include <sim/kernel/random.hpp>

#include <string>

namespace holdfast::sim {

namespace {

class pool_churn final : public scenario {
 public:
  std::string_view name() const noexcept override { return "pool-churn"; }
  std::string_view text() const noexcept override {
    return "threads allocate, fill, check and free buffers of random sizes; some allocations are cancelled";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"threads", "fibers that allocate", 2, 1, 8},
            {"steps", "allocations of each", 6, 1, 1000},
            {"budget_granules", "ceiling of registered bytes, in granules of 4096", 96, 1, 4096}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "pool-churn");
    plan made;
    for (std::int64_t t = 0; t < p.at("threads"); ++t) {
      const std::string who = "a/app-" + std::to_string(t);
      const std::int64_t first = t * 8;
      for (std::int64_t i = 0; i < p.at("steps"); ++i) {
        const auto slot = first + static_cast<std::int64_t>(draw.below(4));
        const auto bytes = static_cast<std::int64_t>(draw.chance(150) ? draw.between(16 * 4096, 24 * 4096)
                                                                      : draw.between(1, 6 * 4096));
        if (draw.chance(200)) {
          made.ops.push_back(make_op(who, "alloc_start", {{"slot", slot}, {"bytes", bytes}}));
          made.ops.push_back(make_op(draw.chance(500) ? who : who + "-canceller", "cancel", {{"slot", slot}}));
          made.ops.push_back(make_op(who, "await", {{"slot", slot}}));
        } else {
          made.ops.push_back(
              make_op(who, draw.chance(250) ? "try_alloc" : "alloc", {{"slot", slot}, {"bytes", bytes}}));
        }
        made.ops.push_back(
            make_op(who, "fill", {{"slot", slot}, {"seed", static_cast<std::int64_t>(draw.below(250))}}));
        if (draw.chance(300))
          made.ops.push_back(make_op(who, "sleep", {{"ns", static_cast<std::int64_t>(draw.below(200'000))}}));
        const auto other = first + static_cast<std::int64_t>(draw.below(4));
        made.ops.push_back(make_op(who, "check", {{"slot", other}}));
        if (draw.chance(600)) made.ops.push_back(make_op(who, "free", {{"slot", other}}));
      }
    }
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a"};
    how.gets = false;
    how.pool.registered_bytes_budget = static_cast<std::uint64_t>(p.at("budget_granules")) * 4096;
    return start_fleet(w, how, what);
  }
};

class budget_edge final : public scenario {
 public:
  std::string_view name() const noexcept override { return "budget-edge"; }
  std::string_view text() const noexcept override {
    return "more threads than the budget has room for ask for dedicated arenas at once; registrations may be slow or "
           "refused";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"threads", "fibers that allocate", 3, 2, 8}, {"rounds", "allocations of each", 3, 1, 100}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "budget-edge");
    plan made;
    for (std::int64_t t = 0; t < p.at("threads"); ++t) {
      const std::string who = "a/app-" + std::to_string(t);
      for (std::int64_t i = 0; i < p.at("rounds"); ++i) {
        // Three of these do not fit beside each other.
        const auto bytes = static_cast<std::int64_t>(draw.between(20 * 4096, 34 * 4096));
        made.ops.push_back(make_op(who, "alloc_start", {{"slot", t}, {"bytes", bytes}}));
        if (draw.chance(300)) made.ops.push_back(make_op(who, "cancel", {{"slot", t}}));
        made.ops.push_back(make_op(who, "await", {{"slot", t}}));
        made.ops.push_back(make_op(who, "fill", {{"slot", t}, {"seed", t * 16 + i}}));
        if (draw.chance(500))
          made.ops.push_back(make_op(who, "sleep", {{"ns", static_cast<std::int64_t>(draw.below(100'000))}}));
        made.ops.push_back(make_op(who, "check", {{"slot", t}}));
        made.ops.push_back(make_op(who, "free", {{"slot", t}}));
      }
    }
    if (draw.chance(400))
      made.faults.push_back({"nic.register", "a", draw.between(1, 4), draw.between(1, 2),
                             draw.chance(500) ? "refuse" : "delay", 300'000});
    if (draw.chance(200)) made.faults.push_back({"pages.allocate", "a", draw.between(1, 4), 1, "refuse", 0});
    if (draw.chance(200)) made.faults.push_back({"heap", "a", draw.between(1, 60), 1, "fail", 0});
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters&,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a"};
    how.gets = false;
    how.pool.registered_bytes_budget = 64 * 4096;
    return start_fleet(w, how, what);
  }
};

class shutdown_under_load final : public scenario {
 public:
  std::string_view name() const noexcept override { return "shutdown-under-load"; }
  std::string_view text() const noexcept override {
    return "the shutdown comes while arenas are being registered, and registrations may outlast it";
  }
  std::vector<parameter> describe_parameters() const override { return {{"threads", "fibers that allocate", 2, 1, 8}}; }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "shutdown-under-load");
    plan made;
    for (std::int64_t t = 0; t < p.at("threads"); ++t) {
      const std::string who = "a/app-" + std::to_string(t);
      for (std::int64_t i = 0; i < 3; ++i) {
        const std::int64_t slot = t * 4 + i;
        const auto bytes = static_cast<std::int64_t>(draw.chance(500) ? draw.between(1, 8 * 4096)
                                                                      : draw.between(16 * 4096, 30 * 4096));
        made.ops.push_back(make_op(who, "alloc_start", {{"slot", slot}, {"bytes", bytes}}));
        if (draw.chance(200)) made.ops.push_back(make_op(who, "cancel", {{"slot", slot}}));
        if (draw.chance(600)) made.ops.push_back(make_op(who, "await", {{"slot", slot}}));
        if (draw.chance(300)) made.ops.push_back(make_op(who, "free", {{"slot", slot}}));
      }
      for (std::int64_t i = 0; i < 3; ++i) made.ops.push_back(make_op(who, "await", {{"slot", t * 4 + i}}));
    }
    made.ops.push_back(make_op("a/closer", "sleep", {{"ns", static_cast<std::int64_t>(draw.below(60'000))}}));
    made.ops.push_back(
        make_op("a/closer", "shutdown", {{"deadline_ns", static_cast<std::int64_t>(draw.between(0, 600'000))}}));
    made.faults.push_back({"nic.register", "a", draw.between(1, 3), draw.between(1, 3), "delay",
                           static_cast<std::int64_t>(draw.between(50'000, 900'000))});
    if (draw.chance(300)) made.faults.push_back({"nic.register", "a", draw.between(1, 3), 1, "refuse", 0});
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters&,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a"};
    how.gets = false;
    return start_fleet(w, how, what);
  }
};

}  // namespace

void add_pinned_scenarios() {
  add_scenario(std::make_unique<shutdown_under_load>());
  add_scenario(std::make_unique<pool_churn>());
  add_scenario(std::make_unique<budget_edge>());
}

}  // namespace holdfast::sim
