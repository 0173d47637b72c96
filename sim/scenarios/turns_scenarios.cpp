// Scenarios of GETs that take turns, and of an owner whose readers die (decision 53).
#include <sim/scenarios/builtin.hpp>
#include <sim/scenarios/fleet.hpp>

#include <sim/kernel/random.hpp>

#include <string>

namespace holdfast::sim {

namespace {

constexpr std::int64_t granule = 4096;
constexpr std::int64_t us = 1'000, ms = 1'000'000, second = 1'000'000'000;

class many_reads final : public scenario {
 public:
  std::string_view name() const noexcept override { return "many-reads"; }
  std::string_view text() const noexcept override {
    return "a reader asks for much at once, some of it longer than one piece, and dies, closes, is cut off or revoked "
           "while the owner stands still or serves: the owner goes on, and every GET ends once (TP-H68 to TP-H73)";
  }
  std::vector<parameter> describe_parameters() const override {
    return {{"rounds", "times that they part", 3, 1, 20}, {"gets", "GETs at once", 4, 1, 16}};
  }
  plan generate(const parameters& p, std::uint64_t seed) const override {
    auto draw = random_stream::derive(seed, "many-reads");
    plan made;
    const auto add = [&made](const std::string& who, const char* what, std::map<std::string, std::int64_t> numbers = {},
                             std::map<std::string, std::string> words = {}) {
      made.ops.push_back(make_op(who, what, std::move(numbers), std::move(words)));
    };
    const auto drawn = [&draw](std::int64_t low, std::int64_t high) {
      return static_cast<std::int64_t>(draw.between(static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high)));
    };
    for (std::int64_t page = 0; page < 2; ++page) {
      add("a/owner", "alloc", {{"slot", page}, {"bytes", page == 0 ? 8 * granule : granule}});
      add("a/owner", "fill", {{"slot", page}, {"seed", 40 + page}});
      add("a/owner", "publish", {{"slot", page}}, {{"name", page == 0 ? "long" : "short"}});
    }
    add("c/chaos", "wait", {}, {{"name", "short"}});
    std::string reader = "b/app";
    std::int64_t life = 1;
    for (std::int64_t round = 0; round < p.at("rounds"); ++round) {
      add(reader, "wait", {}, {{"name", "short"}});
      for (std::int64_t slot = 0; slot < p.at("gets"); ++slot)
        add(reader, "alloc", {{"slot", slot}, {"bytes", 8 * granule}});
      add(reader, "connect", {}, {{"host", "a"}});
      for (std::int64_t slot = 0; slot < p.at("gets"); ++slot) {
        const bool is_long = draw.chance(500);
        add(reader, "get_start", {{"slot", slot}}, {{"name", is_long ? "long" : "short"}});
        if (draw.chance(150)) {
          const std::int64_t given_up = drawn(0, slot);
          add(reader, "cancel", {{"slot", given_up}});
        }
      }
      const std::uint64_t how = draw.below(5);
      const std::int64_t late = drawn(0, 300 * us);
      add("c/chaos", "sleep", {{"ns", late}});
      const bool stands_still = draw.chance(400);
      if (stands_still) {
        add("c/chaos", "pause", {}, {{"host", "a"}});
        const std::int64_t pile_up = drawn(0, 200 * us);
        add("c/chaos", "sleep", {{"ns", pile_up}});
      }
      if (how == 0) {
        add("c/chaos", "crash", {}, {{"host", "b"}});
      } else if (how == 1) {
        add("c/chaos", "partition", {{"one_way", draw.chance(500) ? 1 : 0}}, {{"host", "b"}, {"to", "a"}});
      } else if (how == 2) {
        const std::int64_t deadline = drawn(us, 2 * ms);
        add(reader, "close", {{"deadline_ns", deadline}}, {{"host", "a"}});
      } else if (how == 3) {
        add(reader, "revoke", {}, {{"host", "a"}});
      }
      const std::int64_t parted = how == 1 && draw.chance(300) ? 18 * second : drawn(0, 60 * ms);
      add("c/chaos", "sleep", {{"ns", parted}});
      if (stands_still) add("c/chaos", "resume", {}, {{"host", "a"}});
      if (how == 0) {
        add("c/chaos", "restart", {}, {{"host", "b"}});
        reader = "b/app@" + std::to_string(++life);
      } else {
        if (how == 1) add("c/chaos", "heal", {}, {{"host", "b"}, {"to", "a"}});
        for (std::int64_t slot = 0; slot < p.at("gets"); ++slot) {
          const std::int64_t patience = drawn(10 * us, 300 * ms);
          add(reader, "await", {{"slot", slot}, {"ns", patience}});
        }
      }
    }
    // The owner still serves.
    add(reader, "wait", {}, {{"name", "short"}});
    add(reader, "alloc", {{"slot", 20}, {"bytes", 8 * granule}});
    add(reader, "connect", {}, {{"host", "a"}});
    add(reader, "get", {{"slot", 20}}, {{"name", "long"}});
    if (draw.chance(150)) made.faults.push_back({"ucp.get.error", "b", draw.between(1, 12), 1, "error", 0});
    return made;
  }
  std::expected<std::shared_ptr<void>, std::string> start(world& w, const parameters&,
                                                          const plan& what) const override {
    fleet_settings how;
    how.hosts = {"a", "b", "c"};
    how.get_bytes_max = 3 * granule;
    how.trouble_ns = 300 * second;
    return start_fleet(w, how, what);
  }
};

}  // namespace

void add_turns_scenarios() { add_scenario(std::make_unique<many_reads>()); }

}  // namespace holdfast::sim
