// Scenarios of what stays behind on lanes through shared memory: endpoints that nobody may close.
#include <sim/scenarios/builtin.hpp>
#include <sim/scenarios/fleet.hpp>

#include <sim/kernel/random.hpp>

#include <string>

namespace holdfast::sim {

namespace {

constexpr std::int64_t granule = 4096;
constexpr std::int64_t us = 1'000, ms = 1'000'000, second = 1'000'000'000;

class met_again final : public scenario {
 public:
  std::string_view name() const noexcept override { return "met-again"; }
  std::string_view text() const noexcept override {
    return "two processes of one machine part again and again, by closes, cut links and crashes of the owner, and meet "
           "again: the same life through the same endpoint, another through its own, and over tcp when there are "
           "enough (TP-H63 to TP-H66)";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"rounds", "times that they part", 4, 1, 20},
            {"connections", "connections that a host may have", 2, 2, 16}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "met-again");
    const std::int64_t bytes = 2 * granule;
    // Lives alone use endpoints up, so a few runs have nothing else.
    const bool only_crashes = draw.chance(200);
    const std::int64_t rounds = p.at("rounds") + (only_crashes ? 4 * p.at("connections") : 0);
    plan made;
    const auto app = [&made](const char* what, std::map<std::string, std::int64_t> numbers,
                             std::map<std::string, std::string> words = {}) {
      made.ops.push_back(make_op("b/app", what, std::move(numbers), std::move(words)));
    };
    std::int64_t life = 0;
    const auto page = [&life] { return "page-" + std::to_string(life); };
    const auto offered = [&] {
      ++life;
      const std::string owner = life == 1 ? "a/owner" : "a/owner@" + std::to_string(life);
      made.ops.push_back(make_op(owner, "alloc", {{"slot", 0}, {"bytes", bytes}}));
      made.ops.push_back(make_op(owner, "fill", {{"slot", 0}, {"seed", 40 + life}}));
      made.ops.push_back(make_op(owner, "publish", {{"slot", 0}}, {{"name", page()}}));
    };
    const auto nap = [&](std::int64_t low, std::int64_t high) {
      const auto ns = draw.between(static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high));
      app("sleep", {{"ns", static_cast<std::int64_t>(ns)}});
    };
    offered();
    for (std::int64_t round = 0; round < rounds; ++round) {
      app("wait", {}, {{"name", page()}});
      for (std::int64_t slot = 0; slot < 2; ++slot) app("alloc", {{"slot", slot}, {"bytes", bytes}});
      app("connect", {}, {{"host", "a"}});
      app("get", {{"slot", 0}}, {{"name", page()}});
      // A GET that is under way when they part, and may be held for good.
      if (draw.chance(500)) app("get_start", {{"slot", 1}}, {{"name", page()}});
      if (draw.chance(300)) nap(0, 30 * us);
      const std::uint64_t how = only_crashes ? 2 : draw.between(0, 2);
      if (how == 0) {
        app("close", {{"deadline_ns", 500 * us}}, {{"host", "a"}});
      } else if (how == 1) {
        app("partition", {}, {{"host", "a"}, {"to", "b"}});
        nap(17 * second, 20 * second);
        app("heal", {}, {{"host", "a"}, {"to", "b"}});
      } else {
        app("crash", {}, {{"host", "a"}});
        // A crash is noticed after some tens of milliseconds; before that there is no room for another connection.
        nap(ms, only_crashes ? 100 * ms : 20 * ms);
        app("restart", {}, {{"host", "a"}});
        offered();
      }
      app("await", {{"slot", 1}, {"ns", 200 * ms}});
    }
    app("wait", {}, {{"name", page()}});
    app("alloc", {{"slot", 0}, {"bytes", bytes}});
    app("connect", {}, {{"host", "a"}});
    app("get", {{"slot", 0}}, {{"name", page()}});
    if (draw.chance(150)) made.faults.push_back({"ucp.ep.fail", "b", draw.between(1, 8), 1, "fail", 0});
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters& p,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b"};
    how.one_machine = true;
    how.connections_max = static_cast<std::size_t>(p.at("connections"));
    how.trouble_ns = 600 * second;
    return start_fleet(w, how, what);
  }
};

}  // namespace

void add_memory_scenarios() { add_scenario(std::make_unique<met_again>()); }

}  // namespace holdfast::sim
